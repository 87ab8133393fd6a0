//! `hoist cuobjdump -elf` and `-sass` beside cuobjdump, every line, and values of attributes that no fixture has.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::{files, root, run, tool};

/// Lines of `-elf` without what is left out: debug information, but for tables of unwinding, and empty lines at the end.
fn elf_lines(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (mut shown, mut is_out) = (Vec::new(), false);
    for line in text.lines() {
        let name = line.strip_prefix(".section ").unwrap_or(line);
        // text of PTX in debug information begins with dots, too
        if [".section .", ".nv.", ".text."].iter().any(|start| line.starts_with(start)) {
            let starts = [
                ".debug",
                ".nv_debug",
                ".rel.debug",
                ".rela.debug",
                ".rel.nv_debug",
                ".rela.nv_debug",
            ];
            let is_frames = name.split('\t').next().is_some_and(|it| it.ends_with(".debug_frame"));
            is_out = !is_frames && starts.iter().any(|start| name.starts_with(start));
        }
        if !is_out {
            shown.push(line.to_owned());
        }
    }
    while shown.last().is_some_and(String::is_empty) {
        shown.pop();
    }
    shown
}

/// `-elf` is cuobjdump's, line by line, but for attributes that it calls unknown.
#[test]
fn cuobjdump_dumps_the_same_elf() {
    let Some(cuobjdump) = tool("cuobjdump", "cuobjdump_dumps_the_same_elf") else { return };
    let (mut compared, mut files_compared) = (0usize, 0);
    for file in files().into_iter().filter(|file| file.to_string_lossy().ends_with(".cubin")) {
        let theirs = run(&cuobjdump, &["-elf"], &file);
        let known = elf_lines(&theirs).iter().any(|line| line.starts_with("64-bit ELF"));
        if !theirs.status.success() || !known {
            continue;
        }
        let ours = run(Path::new(env!("CARGO_BIN_EXE_hoist")), &["cuobjdump", "-elf"], &file);
        let (theirs, ours) = (elf_lines(&theirs), elf_lines(&ours));
        for (index, (their, our)) in theirs.iter().zip(&ours).enumerate() {
            let is_unknown = their == "\tAttribute:\tunknown Attribute";
            assert!(
                their == our || is_unknown && our.starts_with("\tAttribute:\tEIATTR_"),
                "{}: line {index}: {our:?}, not {their:?}",
                file.display()
            );
        }
        assert_eq!(theirs.len(), ours.len(), "{}", file.display());
        compared += theirs.len();
        files_compared += 1;
    }
    println!("{files_compared} cubins, {compared} lines");
    assert!(compared >= 20_000 && files_compared >= 35, "{compared} lines, {files_compared} files");
}

/// `-sass` of linked cubins in both forms: with subroutines, with calls, and without code; names, flags, columns and blank lines.
#[test]
fn code_is_shown_as_cuobjdump_shows_it() {
    let test = "code_is_shown_as_cuobjdump_shows_it";
    let (Some(cuobjdump), Some(_)) = (tool("cuobjdump", test), tool("nvdisasm", test)) else {
        return;
    };
    let Some(ptxas) = tool("ptxas", test) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    // the longest instruction of the second has a predicate
    let guarded = ".entry k(.param .u64 at, .param .u32 count)
        { .reg .pred is; .reg .b32 n, m; .reg .f64 d; .reg .b64 p, q; ld.param.u64 p, [at]; ld.param.u32 n, [count];
        ld.global.u32 m, [p]; ld.global.f64 d, [p+8]; ld.global.u64 q, [p+8];
        setp.eq.u32 is, n, 7; @is st.global.u32 [p+4096], n; st.global.u32 [p], m; ret; }\n";
    let made = [("bare", ""), ("guarded", guarded)].map(|(name, text)| {
        let (source, file) =
            (folder.path().join(name), folder.path().join(name).with_extension("cubin"));
        let text = format!(".version 8.0\n.target sm_90\n.address_size 64\n{text}");
        fs::write(&source, text).expect("a file");
        let mut command = Command::new(&ptxas);
        let output = command.args(["-arch", "sm_90", "-o"]).args([&file, &source]).output();
        assert!(output.as_ref().is_ok_and(|output| output.status.success()), "{output:?}");
        file
    });
    // nothing in these is still to be relocated
    let names =
        ["kernels-13.5-", "integers-13.5-", "kernels-12.9-", "textures-13.5-", "cluster-13.5-"];
    let is_meant = |file: &PathBuf| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        name.ends_with(".cubin") && names.iter().any(|start| name.starts_with(start))
    };
    let (mut compared, mut subroutines, mut older) = (0usize, 0usize, 0usize);
    for file in files().into_iter().filter(is_meant).chain(made) {
        let theirs = run(&cuobjdump, &["-sass"], &file);
        if !theirs.status.success() {
            continue; // it has given up the architecture
        }
        let ours = run(Path::new(env!("CARGO_BIN_EXE_hoist")), &["cuobjdump", "-sass"], &file);
        let lines = |output: &Output| -> Vec<String> {
            String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
        };
        let (theirs, ours) = (lines(&theirs), lines(&ours));
        for (their, our) in theirs.iter().zip(&ours) {
            assert_eq!(their, our, "{}", file.display());
        }
        assert_eq!(theirs.len(), ours.len(), "{}", file.display());
        compared += theirs.len();
        subroutines += theirs.iter().filter(|line| line.contains("CALL.REL")).count();
        older += usize::from(theirs.iter().any(|line| line.contains("EF_CUDA_64BIT_ADDRESS")));
    }
    println!("{compared} lines, {subroutines} calls of subroutines, {older} older files");
    assert!(compared >= 2000 && subroutines > 0 && older > 0, "{compared} lines");
}

/// Values of attributes that no fixture has, put where one of the same size is, in the words of cuobjdump 13.5.
#[test]
fn values_of_attributes_are_in_words() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path().join("k.cubin");
    let bytes = fs::read(root().join("fixtures/cuda/cluster-13.5-sm_90.cubin")).expect("a fixture");
    // of a parameter: format, attribute, size
    let row = bytes.windows(4).position(|row| row == [4, 23, 12, 0]).expect("a parameter");
    let half = bytes.windows(2).position(|row| row == [3, 27]).expect("a count of registers");
    let barrier = bytes.windows(2).position(|row| row == [4, 57]).expect("instructions");
    let cuobjdump = tool("cuobjdump", "values_of_attributes_are_in_words");
    #[rustfmt::skip]
    let rows: [(u8, &[u32], &str); 14] = [
        (79, &[6, 9, 40], "\tValue:\tAt Entry Fragments :\t AT_ENTRY_FRAGMENT_TMEM_CTA1_V2 AT_ENTRY_FRAGMENT_DEVICE_MEMCPY unknown Attribute\n\n"),
        (102, &[6, 3, 11], "\tValue:\tLanguage:\t CUDA_C++_Tile PTX UNKNOWN\n\n"),
        (108, &[2, 0x10, 0x20], "\tValue:\tInstruction Kind : FENCE_PROXY_ASYNC_GENERIC_SR_SMEM_READS_RELEASE_CLUSTER\n\t\t0x10\n\t\t0x20\n"),
        (46, &[0x100, 7], "\tValue:\t(0x100, 7)  \n"),
        (58, &[3, 0x70], "\tAttribute:\tEIATTR_COROUTINE_RESUME_ID_OFFSETS\n\tFormat:\tEIFMT_SVAL\n\tValue:\t(3, 0x70)  \n"),
        (50, &[0x80, 16], "\tValue:\tstart offset: 0x80\tsize: 16\n"),
        (57, &[0x2a], "\tInstruction Kind : MBARRIER_TRY_WAIT_PARITY\t(R255 + UR"),
        (57, &[0x2f], "\tInstruction Kind : Unknown Instruction\t(R255 + UR"),
        (57, &[0x10], ")\tStride : MBARRIER_STRIDE_X8\n"),
        (52, &[0x10, 1, 0], "\t\tOffset of Indirect Branch: 0x10 (kind_call)\t Number of targets: 0\n\t\t\n\n"),
        (80, &[0x41], "\tValue:\tUsed Sparse Variants : QGMMA.SP UTC*MMASparse\n"),
        (80, &[0], "\tValue:\t0x0\n"),
        (88, &[2], "\tValue:\tFUNC_ATENTRY_STUB\n\n"),
        (88, &[9], "\tValue:\t\n"),
    ];
    for (attribute, words, expected) in rows {
        let mut changed = bytes.clone();
        if attribute == 80 || attribute == 88 {
            changed[half + 1..half + 4].copy_from_slice(&[attribute, words[0] as u8, 0]);
        } else if attribute == 57 {
            changed[barrier + 16] = words[0] as u8; // kind and stride of the first
        } else {
            changed[row + 1] = attribute;
            changed[row + 2] = u8::try_from(words.len() * 4).unwrap();
            for (at, word) in (row + 4..).step_by(4).zip(words) {
                changed[at..at + 4].copy_from_slice(&word.to_le_bytes());
            }
            // what is left over is an attribute without a name
            for at in (row + 4 + words.len() * 4..row + 16).step_by(4) {
                changed[at..at + 4].copy_from_slice(&[1, 1, 0, 0]);
            }
        }
        fs::write(&at, changed).expect("a file");
        let ours = run(Path::new(env!("CARGO_BIN_EXE_hoist")), &["cuobjdump", "-elf"], &at);
        let text = String::from_utf8_lossy(&ours.stdout).into_owned();
        assert!(text.contains(expected), "{attribute}: {text}");
        if let Some(cuobjdump) = &cuobjdump {
            let theirs = run(cuobjdump, &["-elf"], &at).stdout;
            let theirs = String::from_utf8_lossy(&theirs).into_owned();
            assert!(theirs.contains(expected), "{attribute}: {theirs}");
        }
    }
}

/// Banks of objects of toolkits 10 and 11 have one type, whatever their number: they are shown as those of others.
#[test]
fn banks_of_older_objects_are_shown() {
    let mut bytes =
        fs::read(root().join("fixtures/cuda/calls_a-13.5-sm_80.cubin")).expect("a file");
    let shown = |bytes: &[u8]| {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("old.cubin");
        fs::write(&file, bytes).expect("a file");
        let hoist = Path::new(env!("CARGO_BIN_EXE_hoist"));
        let output = run(hoist, &["cuobjdump", "-elf"], &file);
        let theirs = tool("cuobjdump", "banks_of_older_objects_are_shown");
        let theirs = theirs.map(|cuobjdump| elf_lines(&run(&cuobjdump, &["-elf"], &file)));
        (elf_lines(&output), theirs)
    };
    let (newer, _) = shown(&bytes);
    let headers = u64::from_le_bytes(bytes[40..48].try_into().expect("eight bytes")) as usize;
    let mut changed = 0;
    for header in bytes[headers..].chunks_exact_mut(64) {
        if header[4..8] == 0x7000_0064u32.to_le_bytes() {
            header[4..8].copy_from_slice(&0x7000_0006u32.to_le_bytes());
            changed += 1;
        }
    }
    assert!(changed > 0);
    let (older, theirs) = shown(&bytes);
    let banks = |lines: &[String]| lines.iter().filter(|line| line.starts_with("0x")).count();
    assert_eq!(banks(&older), banks(&newer));
    for (ours, theirs) in older.iter().zip(theirs.iter().flatten()) {
        assert!(ours == theirs || theirs == "\tAttribute:\tunknown Attribute", "{ours}: {theirs}");
    }
    assert_eq!(theirs.map_or(older.len(), |theirs| theirs.len()), older.len());
}
