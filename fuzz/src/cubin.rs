//! Reads everything that a cubin says of itself, and changes it.

use super::sink::Sink;
use nvinfo::{Cubin, CubinNote, Edge, Function, Node, eiattr, occupancy};

/// Nodes and edges of the call tree that there is room for.
const ROOM: usize = 4096;
/// Functions of which everything is read.
const FUNCTIONS: usize = 64;

/// Reads everything, and plans every change.
pub fn run(bytes: &[u8]) {
    let mut sink = Sink::default();
    let cubin = match Cubin::parse(bytes) {
        Ok(cubin) => cubin,
        Err(error) => return sink.display(error),
    };
    sink.display(cubin.target());
    sink.debug(cubin.target());
    for row in cubin.attributes().into_iter().flatten().chain(cubin.compat().into_iter().flatten())
    {
        if let Some(row) = sink.result(row) {
            sink.debug((row.name(), row.payload(), row.patch(7)));
            sink.debug(row.payload().code_offsets().count());
        }
    }
    for note in cubin.notes() {
        if let Some(CubinNote::Tool(tool)) = sink.result(note) {
            sink.debug((tool.architecture(), tool.toolkit()));
        }
    }
    sink.debug((cubin.undefined().count(), cubin.constant_banks().count()));
    cubin.functions().take(FUNCTIONS).for_each(|function| one(&function, bytes, &mut sink));
    let Ok((nodes, edges)) = cubin.call_tree_size() else { return };
    if nodes > ROOM || edges > ROOM {
        return;
    }
    let (mut nodes, mut edges) = (vec![Node::EMPTY; nodes], vec![Edge::EMPTY; edges]);
    match cubin.call_tree(&mut nodes, &mut edges) {
        Ok(mut tree) => {
            for function in cubin.functions().take(FUNCTIONS) {
                sink.debug(tree.stack(function.index()));
                let mut reached = 0;
                tree.reach(function.index(), |_| reached += 1);
                sink.debug(reached);
            }
        }
        Err(error) => sink.display(error),
    }
}

fn one(function: &Function<'_>, bytes: &[u8], sink: &mut Sink) {
    sink.debug(function.name());
    if let Some(needs) = sink.result(function.resources()) {
        let demand = needs.demand(needs.threads().unwrap_or(256), 1024);
        let sm = function.cubin().target().sm.unwrap_or(0);
        sink.debug(occupancy::limits(sm).map(|limits| limits.occupancy(&demand)));
    }
    sink.debug(function.code().map(<[u8]>::len));
    if let Ok(code) = function.code() {
        let (moved, mut suspects) = (code.get(16..).unwrap_or_default(), 0);
        sink.result(function.check_code(moved, |_| suspects += 1));
        sink.debug(suspects);
    }
    sink.debug(function.parameters().into_iter().flatten().filter(Result::is_ok).count());
    sink.debug((function.subroutines().count(), function.constant_banks().count()));
    sink.debug(function.callees().into_iter().flatten().count());
    let registers = function.patch_registers(99).into_iter().flatten();
    let threads = function.patch_max_threads([1, 2, 3]).into_iter().flatten();
    let stack = function.patch_symbol_attribute(eiattr::MIN_STACK_SIZE, 9);
    let mut changed = Vec::new();
    for patch in registers.chain(threads).chain(stack).take(8) {
        changed.clear();
        changed.extend_from_slice(bytes);
        sink.debug(patch.apply(&mut changed));
        assert_eq!(changed.len(), bytes.len(), "a change is made in place");
    }
}
