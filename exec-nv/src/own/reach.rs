//! What a kernel may get to: functions that it calls, and those behind pointers.

use std::collections::BTreeSet;

use nvinfo::{Call, Cubin};

use crate::error::Error;

/// Symbols of the functions that `kernel` may get to, by calls and through pointers, itself left out. The driver takes stack,
/// registers and barriers of them into account.
pub(crate) fn reached(cubin: &Cubin<'_>, kernel: u32) -> Result<BTreeSet<u32>, Error> {
    let calls: Vec<Call> = cubin.calls()?.collect();
    let (mut reached, mut open) = (BTreeSet::new(), vec![kernel]);
    while let Some(from) = open.pop() {
        for call in &calls {
            let callees: Vec<u32> = match *call {
                Call::Direct { caller, callee } | Call::MayReach { caller, callee }
                    if caller == from =>
                {
                    vec![callee]
                }
                Call::Indirect { caller, prototype } if caller == from => {
                    calls.iter().filter_map(|other| taken(*other, prototype)).collect()
                }
                _ => continue,
            };
            let new = callees.into_iter().filter(|&callee| callee != kernel);
            open.extend(new.filter(|&callee| reached.insert(callee)));
        }
    }
    Ok(reached)
}

/// The function, if its address is taken and an indirect call of `wanted` may reach it.
fn taken(call: Call, wanted: u32) -> Option<u32> {
    match call {
        Call::AddressTaken { function, prototype } if prototype == wanted => Some(function),
        _ => None,
    }
}
