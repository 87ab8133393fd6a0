
/// Answers nobody can foresee: what entry points of relocation are called with.
pub struct Unknown;

impl elf_core::Resolve for Unknown {
    fn resolve(&self, query: &elf_core::Query) -> Option<u64> {
        Some(seen(query)).filter(|value| *value != 1)
    }

    fn attributes(&self, query: &elf_core::Query) -> elf_core::SymbolAttributes {
        elf_core::SymbolAttributes::new(seen(query) == 1, 0)
    }
}

impl elf_core::Facts for Unknown {
    fn reach(&self, record: &elf_core::Record) -> Option<elf_core::Reach> {
        (seen(record) != 1).then_some(elf_core::Reach { near: true, low: true, distance: Some(4) })
    }

    fn is_local_exec(&self, record: &elf_core::Record) -> bool {
        seen(record) == 1
    }

    fn is_thread_local(&self, record: &elf_core::Record) -> bool {
        seen(record) == 2
    }

    fn label(&self, record: &elf_core::Record) -> Option<u64> {
        Some(seen(record)).filter(|value| *value != 1)
    }
}

impl elf_core::Pass for Unknown {
    type Error = elf_core::ApplyError;

    fn failed(&self, error: elf_core::ApplyError) -> elf_core::ApplyError {
        error
    }

    fn bytes(&self) -> core::result::Result<&[u8], elf_core::ApplyError> {
        Ok(&[1, 2, 3, 4, 5, 6, 7, 8])
    }

    fn decided(
        &mut self,
        kind: &'static elf_core::Kind,
        record: &elf_core::Record,
        decision: elf_core::Decision,
    ) -> core::result::Result<(), elf_core::ApplyError> {
        seen((kind, record, decision));
        Ok(())
    }
}

impl elf_core::eh_frame::Places for Unknown {
    fn is_code(&self, address: u64, size: u64) -> bool {
        seen([address, size]) != 1
    }

    fn is_data(&self, address: u64) -> bool {
        seen(address) != 1
    }

    fn is_personality(&self, address: u64) -> bool {
        seen(address) != 1
    }

    fn word(&self, address: u64) -> Option<u64> {
        Some(seen(address)).filter(|value| *value != 1)
    }
}

