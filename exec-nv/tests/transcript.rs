//! Every call that the layer makes when all of it is used once, with every argument, beside the calls that were read and found right.
#![cfg(all(feature = "driver", unix))]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test")]

#[path = "layer/other.rs"]
mod other;
mod stub;
#[path = "layer/uses.rs"]
mod uses;

use stub::stub;
use uses::everything;

/// `HOIST_BLESS=1` writes them anew; then they are to be read.
const CALLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/layer/calls.txt");

#[test]
fn every_call_has_the_arguments_that_were_read_and_found_right() {
    let name = "every_call_has_the_arguments_that_were_read_and_found_right";
    let Some(stub) = stub(name) else { return };
    stub.be(13000, 2, 90);
    everything(&stub).unwrap();
    let found = stub.calls();
    if std::env::var_os("HOIST_BLESS").is_some() {
        std::fs::write(CALLS, &found).unwrap();
    }
    let expected = std::fs::read_to_string(CALLS).unwrap();
    for (number, (found, expected)) in (1..).zip(found.lines().zip(expected.lines())) {
        assert_eq!(found, expected, "call {number}");
    }
    assert_eq!(found.lines().count(), expected.lines().count());
}
