//! The stubs of a symbol: those of the architecture's that relocations need, one behind the other.

use crate::model::spans::align_up;
use crate::model::storage::Needs;
use elf_core::{Arch, Check, Query, Role, Stub, StubChoice, SymbolAttributes, Value, find};

/// Alignment in bytes of what all symbols have.
pub(crate) fn alignment<A: Arch>() -> u64 {
    A::STUBS.iter().fold(1, |most, stub| most.max(stub.alignment))
}

/// The stubs that a symbol has, with their offsets from its first.
pub(crate) fn of<A: Arch>(needs: Needs) -> impl Iterator<Item = (u64, &'static Stub)> {
    let needed = (0u8..4).zip(A::STUBS).filter(move |(index, _)| needs.has(Needs::stub(*index)));
    needed.map(move |(index, stub)| (offset::<A>(needs, index), stub))
}

/// Bytes from the first of a symbol's stubs to stub `index`.
pub(crate) fn offset<A: Arch>(needs: Needs, index: u8) -> u64 {
    if const { A::STUBS.len() < 2 } {
        return 0;
    }
    end::<A>(needs, A::STUBS.get(..usize::from(index)).unwrap_or_default())
}

/// Where those of `stubs` end that are needed, rounded up to where any other may start.
fn end<A: Arch>(needs: Needs, stubs: &[Stub]) -> u64 {
    (0u8..4).zip(stubs).filter(|(index, _)| needs.has(Needs::stub(*index))).fold(
        0,
        |end, (_, stub)| {
            align_up(end.saturating_add(stub.size()), alignment::<A>()).unwrap_or(u64::MAX)
        },
    )
}

/// Size in bytes of the stubs of a symbol, with the padding to those of the next.
pub(crate) fn size<A: Arch>(needs: Needs) -> u64 {
    match A::STUBS {
        [stub] => stub.size(),
        stubs => end::<A>(needs, stubs),
    }
}

/// What stub `index` needs: itself and what its code loads.
pub(crate) fn needs<A: Arch>(index: u8) -> Needs {
    let is_got =
        |number| find(A::KINDS, number).is_some_and(|kind| matches!(kind.value.of, Role::Got(_)));
    let stub = A::STUBS.get(usize::from(index));
    let got = stub.is_some_and(|stub| stub.relocations.iter().any(|it| is_got(it.r#type)));
    if got { Needs::stub(index).with(Needs::GOT) } else { Needs::stub(index) }
}

/// The stub that a branch goes by way of, if it does not reach `address`, or cannot go there itself.
pub(crate) fn choose<A: Arch>(
    query: &Query,
    address: u64,
    target: SymbolAttributes,
) -> Option<StubChoice> {
    let choice = A::stub(query.kind, target)?;
    let check = choice.within.unwrap_or(query.kind.check);
    (choice.always || !reaches::<A>(query, check, address)).then_some(choice)
}

/// Whether a branch that spans less than its kind allows goes as far as to its stub.
pub(crate) fn is_in_reach<A: Arch>(query: &Query, choice: StubChoice, stub: u64) -> bool {
    !A::HAS_STATES || choice.within.is_none_or(|check| reaches::<A>(query, check, stub))
}

/// Whether a branch at the place that spans what `check` holds reaches `address` itself.
fn reaches<A: Arch>(query: &Query, check: Check, address: u64) -> bool {
    let Value { minus, page, .. } = query.kind.value;
    let place = if minus == Role::Place { query.place } else { return false };
    let distance = address.wrapping_add_signed(query.addend).wrapping_sub(place);
    let distance = match A::ADDRESS_SIZE {
        4 => i64::from(distance as i32).cast_unsigned(),
        _ => distance,
    };
    page == elf_core::Page::Neither && check.modulo(A::ADDRESS_SIZE).holds(distance)
}

#[cfg(test)]
mod tests {
    use super::*;
    use reloc_arm::Arm;
    use reloc_arm::arm::R_ARM_THM_CALL;
    use reloc_arm::attributes::J1J2;

    /// The instruction has room for more, but the processors do not know of it.
    #[test]
    fn stubs_of_early_processors_are_near() {
        let kind = find(Arm::KINDS, R_ARM_THM_CALL).unwrap();
        let query = Query { role: Role::Plt, symbol: 1, place: 0x100_0000, addend: -4, kind };
        let reaches = |processor, stub: u64| {
            let target = SymbolAttributes::new(true, 0).on(processor);
            let choice = choose::<Arm>(&query, 0x7000_0000, target).unwrap();
            is_in_reach::<Arm>(&query, choice, query.place.wrapping_add(stub))
        };
        assert!(reaches(0, 0x40_0002));
        assert!(!reaches(0, 0x40_0004));
        assert!(reaches(0, (-0x3f_fffci64).cast_unsigned()));
        assert!(!reaches(0, (-0x3f_fffei64).cast_unsigned()));
        assert!(reaches(J1J2, 0x40_0004));
    }

    /// Behind the last address of 32 bits comes the first.
    #[test]
    fn what_is_at_the_other_end_of_memory_is_near() {
        let kind = find(Arm::KINDS, R_ARM_THM_CALL).unwrap();
        let stub_of = |place, address| {
            let query = Query { role: Role::Plt, symbol: 1, place, addend: -4, kind };
            choose::<Arm>(&query, address, SymbolAttributes::new(true, 0).on(J1J2))
        };
        for (place, address) in [(0x1000, 0xffff_f000), (0xffff_f000, 0x1000)] {
            assert!(stub_of(place, address).is_none());
        }
        assert!(stub_of(0x1000, 0x8000_0000).is_some());
    }
}
