//! Graphs that can be launched.

use core::ptr;
use std::sync::Arc;

use cudarc::driver::sys::{CUgraphExec, CUgraphNode};

use super::build::{NvGraph, Template, UsedBy};
use super::node::{self, NvGraphNode};
use crate::arguments::NvArgument as Argument;
use crate::context::Context;
use crate::error::Error;
use crate::functions::UpdateOutcome;
use crate::launch::NvLaunch;
use crate::program::NvProgram;
use crate::queue::NvQueue;

/// A graph that is ready to be launched: see [`NvGraph::instantiate`]. One that was launched can be changed, for launches from then on.
#[derive(Debug)]
pub struct NvGraphExec {
    ready: Arc<Ready>,
    /// Nodes are named by those of the graph that it was made of.
    template: Arc<Template>,
    nodes: Vec<CUgraphNode>,
}

/// What a launch uses: kept by queues.
#[derive(Debug)]
struct Ready {
    exec: Arc<Exec>,
    used: Vec<UsedBy>,
}

/// The driver's graph, until this is dropped.
#[derive(Debug)]
struct Exec {
    context: Arc<Context>,
    handle: CUgraphExec,
    generation: u64,
}

// SAFETY: handles are good on every thread.
unsafe impl Send for NvGraphExec {}
// SAFETY: as above; what changes a graph has it alone.
unsafe impl Sync for NvGraphExec {}
// SAFETY: as above.
unsafe impl Send for Exec {}
// SAFETY: as above.
unsafe impl Sync for Exec {}

impl Drop for Exec {
    fn drop(&mut self) {
        // SAFETY: ours, and nobody has it any more: queues keep what they run.
        let destroy = |driver: &crate::Driver| unsafe { driver.cuGraphExecDestroy(self.handle) };
        let _ = self.context.release(self.generation, destroy);
    }
}

const OF_ANOTHER_KIND: &str = "a call is of another kind";

/// `CUgraphExecUpdateResult` in words.
const REASONS: [&str; 9] = [
    "",
    "an error",
    "the calls depend on each other in another way",
    OF_ANOTHER_KIND,
    "a launch has another kernel, and the driver is too old for that",
    "what a call has cannot be changed",
    "a call can never be changed",
    "a launch has a kernel that cannot stand there",
    "the attributes of a launch are others",
];

/// `CU_GRAPH_NODE_TYPE_KERNEL`.
const KERNEL_NODE: u32 = 0;
/// `CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED`.
const OTHER_KIND: u32 = 3;

impl NvGraph {
    /// Makes it ready to be launched, as it is now.
    ///
    /// # Errors
    /// [`Error::Stale`] after a reset; what the driver says.
    pub fn instantiate(&self) -> Result<NvGraphExec, Error> {
        self.template.check()?;
        let (context, mut handle) = (&self.template.context, ptr::null_mut());
        let template = self.template.handle;
        // SAFETY: the place is ours, the graph is there.
        context.run(|driver| unsafe {
            driver.cuGraphInstantiateWithFlags(&raw mut handle, template, 0)
        })?;
        let generation = self.template.generation;
        let exec = Arc::new(Exec { context: Arc::clone(context), handle, generation });
        Ok(NvGraphExec {
            ready: Arc::new(Ready { exec, used: self.used.clone() }),
            template: Arc::clone(&self.template),
            nodes: self.nodes.clone(),
        })
    }
}

impl NvGraphExec {
    /// Puts a launch of all its calls into a queue, behind what is there.
    ///
    /// # Errors
    /// [`Error::Core`] if the queue is of another device, or the host has a view of one of the buffers; [`Error::Stale`] after a reset;
    /// what the driver says.
    ///
    /// # Safety
    /// All its kernels are sound to run beside whatever else runs, as for [`NvProgram::launch`].
    pub unsafe fn launch(&self, queue: &NvQueue) -> Result<(), Error> {
        let stream = self.stream(queue)?;
        let context = queue.stream().context();
        let mut call = queue.begin();
        for (_, all) in &self.ready.used {
            call.uses_all(all)?;
        }
        let exec = self.ready.exec.handle;
        // SAFETY: graph and stream are there; the caller guarantees the kernels.
        context.run(|driver| unsafe { driver.cuGraphLaunch(exec, stream) })?;
        call.keep(&self.ready);
        Ok(())
    }

    /// Puts onto the device what the first launch would.
    ///
    /// # Errors
    /// As [`launch`](Self::launch).
    pub fn upload(&self, queue: &NvQueue) -> Result<(), Error> {
        let stream = self.stream(queue)?;
        let context = queue.stream().context();
        let call = queue.begin();
        // SAFETY: both are there.
        context.run(|driver| unsafe { driver.cuGraphUpload(self.ready.exec.handle, stream) })?;
        call.keep(&self.ready);
        Ok(())
    }

    /// The stream of a queue that it can be put into.
    fn stream(&self, queue: &NvQueue) -> Result<cudarc::driver::sys::CUstream, Error> {
        self.template.check()?;
        self.template.context.expect(queue.stream().context().id())?;
        queue.stream().handle()
    }

    /// Makes it what `graph` is: the same calls that depend on each other in the same way, with other parameters. It names its calls as
    /// before, and keeps what all calls of `graph` use until the next update.
    ///
    /// # Errors
    /// [`Error::GraphUpdate`] with the reason, if that cannot be: it is then as it was. What the driver says.
    pub fn update(&mut self, graph: &NvGraph) -> Result<(), Error> {
        self.template.check()?;
        graph.template.check()?;
        let (exec, other) = (self.ready.exec.handle, graph.template.handle);
        let mut outcome = UpdateOutcome { result: 0, node: ptr::null_mut(), from: ptr::null_mut() };
        // SAFETY: the place is ours, both graphs are there.
        let done = self
            .template
            .context
            .run(|driver| unsafe { driver.cuGraphExecUpdate_v2(exec, other, &raw mut outcome) });
        match done {
            Err(Error::Driver { .. }) if outcome.result != 0 => {
                let reason = REASONS.get(outcome.result as usize).copied();
                let node = graph.nodes.iter().position(|&node| node == outcome.node);
                let reason = reason.unwrap_or("a reason that is not known");
                return Err(Error::GraphUpdate { result: outcome.result, reason, node });
            }
            done => done?,
        }
        // which of its calls became which here, the driver alone knows: what they use stays as a whole
        self.now_uses(graph.used.iter().map(|(_, all)| (None, Arc::clone(all))).collect());
        Ok(())
    }

    /// Changes a launch: the kernel, its arguments, grid, block and dynamic shared memory. Attributes and clusters stay as they were.
    ///
    /// # Errors
    /// [`Error::OtherGraph`] if `node` is not of the graph that this was made of, as it was then; [`Error::GraphUpdate`] if it is no launch; as
    /// [`NvGraph::add_kernel`].
    ///
    /// # Safety
    /// As for [`NvProgram::launch`], whenever the graph runs.
    pub unsafe fn set_kernel(
        &mut self,
        node: NvGraphNode,
        program: &NvProgram,
        arguments: &[Argument<'_>],
        launch: &NvLaunch,
    ) -> Result<(), Error> {
        self.template.check()?;
        let handle = node.handle(self.template.id, &self.nodes)?;
        let (context, exec) = (&self.template.context, self.ready.exec.handle);
        let mut kind = KERNEL_NODE;
        // SAFETY: the place is ours, the node is there as long as the graph that it was made of.
        context.run(|driver| unsafe { driver.cuGraphNodeGetType(handle, &raw mut kind) })?;
        if kind != KERNEL_NODE {
            let (result, node) = (OTHER_KIND, Some(node.index()));
            return Err(Error::GraphUpdate { result, reason: OF_ANOTHER_KIND, node });
        }
        let used = node::with_kernel(context, program, arguments, launch, |parameters, used| {
            // SAFETY: both are there; there is a pointer to each parameter, which the driver copies.
            context.run(|driver| unsafe {
                driver.cuGraphExecKernelNodeSetParams_v2(exec, handle, parameters)
            })?;
            Ok(used)
        })?;
        let mut all = self.ready.used.clone();
        all.retain(|(index, _)| *index != Some(node.index()));
        all.push((Some(node.index()), Arc::new(used.retain())));
        self.now_uses(all);
        Ok(())
    }

    /// Launches from now on use this; those that were made keep what they use.
    fn now_uses(&mut self, used: Vec<UsedBy>) {
        self.ready = Arc::new(Ready { exec: Arc::clone(&self.ready.exec), used });
    }
}
