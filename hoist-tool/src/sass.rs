//! Machine code of NVIDIA GPUs as text: through nvdisasm, read back so that it can be filtered, drawn and given to programs.

mod blocks;
mod code;
mod picture;
mod tool;

pub use blocks::{Block, blocks};
pub use code::{Code, Instruction, SourceLine, parse};
pub use picture::{dot, outline, svg};
pub use tool::{DisasmOptions, disassemble, find_tool, nvdisasm};

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const TEXT: &str = "\t.target\tsm_80\n\n//--------------------- .text.k  --------------------------\n\
        \t.section\t.text.k,\"ax\",@progbits\n        .global k   // | GPR   | UGPR   |\nk:  // |   #   |   #    |\n.text.k:\n\
        \t//## File \"a.cu\", line 9 inlined at \"b.cu\", line 3\n\t//## File \"b.cu\", line 3\n\
        \x20       /*0000*/  @!P0 BRA `(.L_x_1) ;     // |   2   |   1    |\n\
        \x20       /*0010*/  IADD3 R1, R2, 0x1, RZ ;  // |   3   |        |\n.L_x_1:\n\
        \x20       /*0020*/  EXIT ;\n.L_x_2:\n        /*0030*/  BRA `(.L_x_2);\n        /*0040*/  NOP;\n.L_x_3:\n";

    #[test]
    fn functions_are_read() {
        let all = parse(TEXT);
        assert_eq!(all.len(), 1);
        let mut code = all[0].clone();
        code.trim();
        assert_eq!((code.name.as_str(), code.instructions.len()), ("k", 4));
        let first = &code.instructions[0];
        assert_eq!((first.text.as_str(), first.opcode()), ("@!P0 BRA `(.L_x_1)", "BRA"));
        assert!(first.is_predicated());
        assert_eq!(first.live, BTreeMap::from([("GPR".to_owned(), 2), ("UGPR".to_owned(), 1)]));
        assert_eq!(first.source[0], SourceLine { file: "a.cu".to_owned(), line: 9 });
        assert_eq!(code.instructions[2].labels, [".L_x_1"]);
        assert_eq!(code.instructions[1].live.len(), 1);
    }

    #[test]
    fn blocks_and_pictures() {
        let mut code = parse(TEXT).remove(0);
        code.trim();
        let code = &code;
        let found = blocks(code);
        let ends: Vec<_> = found.iter().map(|block| (block.start, block.next.clone())).collect();
        assert_eq!(ends, [(0, vec![2, 1]), (1, vec![2]), (2, vec![]), (3, vec![3])]);
        let text = dot(code, &found);
        assert!(text.contains("b0 -> b2") && text.ends_with("}\n"), "{text}");
        let one = (code.clone(), found.clone());
        let text = svg(std::slice::from_ref(&one));
        assert!(text.starts_with("<svg") && text.contains("IADD3") && text.ends_with("</svg>\n"));
        assert_eq!(text.matches("<svg").count(), 1);
        // several are parts of one picture
        let text = svg(&[one.clone(), one]);
        let whole = roxmltree::Document::parse(&text).unwrap();
        let parts = whole.root_element().children().filter(|one| one.has_tag_name("svg"));
        assert_eq!(parts.count(), 2, "{text}");
        let text = outline(code, &found);
        assert!(text.contains("block 0") && text.contains("-> 2, 1"), "{text}");
    }
}
