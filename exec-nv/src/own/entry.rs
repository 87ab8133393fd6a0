//! The code of a shell: it goes on at an address anywhere.

/// The first architecture whose instructions are these.
pub const FIRST_SM: u32 = 70;

/// Bytes of the code.
pub const ENTRY_SIZE: usize = 128;

/// Offset of the instruction that ends a thread.
pub const EXIT_OFFSET: u32 = 0x30;

/// Bytes of an instruction.
const INSTRUCTION: usize = 16;

/// `MOV R2, IMMEDIATE`, the immediate in bits 32 to 63.
const MOV_R2: u128 = instruction(0x0000_0000_0002_7802, 0x000f_e200_0000_0f00);
/// `MOV R3, IMMEDIATE`, and wait until both are written.
const MOV_R3: u128 = instruction(0x0000_0000_0003_7802, 0x000f_ee00_0000_0f00);
/// `CALL.ABS.NOINC R2`: as compilers write calls of function pointers in relocatable code.
const CALL_R2: u128 = instruction(0x0000_0000_0200_7343, 0x000f_ea00_03c0_0000);
/// `EXIT`.
const EXIT: u128 = instruction(0x0000_0000_0000_794d, 0x000f_ea00_0380_0000);
/// `BRA` to itself: as compilers end every function.
const BRA_SELF: u128 = instruction(0xffff_fffc_00fc_7947, 0x000f_c000_0383_ffff);
/// `NOP`.
const NOP: u128 = instruction(0x0000_0000_0000_7918, 0x000f_c000_0000_0000);

const fn instruction(low: u64, high: u64) -> u128 {
    (high as u128) << 64 | low as u128
}

/// Code that goes on at `address`, for architectures from [`FIRST_SM`] on. Kernels end their threads, so that nothing comes
/// back; registers R2 and R3 are changed, which kernels set before they read them.
#[must_use]
pub fn entry(address: u64) -> [u8; ENTRY_SIZE] {
    let low = u128::from(address as u32) << 32;
    let high = u128::from((address >> 32) as u32) << 32;
    let code = [MOV_R2 | low, MOV_R3 | high, CALL_R2, EXIT, BRA_SELF, NOP, NOP, NOP];
    let mut bytes = [0; ENTRY_SIZE];
    for (place, instruction) in bytes.chunks_exact_mut(INSTRUCTION).zip(code) {
        place.copy_from_slice(&instruction.to_le_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use nvinfo::Instructions;

    #[test]
    fn an_address_is_in_two_instructions() {
        let code = entry(0x7f12_3456_789a_bc80);
        assert_eq!(code[4..8], 0x789a_bc80_u32.to_le_bytes());
        assert_eq!(code[20..24], 0x7f12_3456_u32.to_le_bytes());
        let opcode = |at| Instructions::Volta.opcode(&code, at);
        assert_eq!([0, 16, 32].map(opcode), [Some(0x802), Some(0x802), Some(0x343)]);
        assert_eq!(opcode(EXIT_OFFSET), Some(0x94d));
    }
}
