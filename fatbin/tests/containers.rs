//! NVIDIA's containers, as its tools made them: `fixtures/fatbin/README.md` says how.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use fatbin::{
    CompressionMethod, CudaVersion, EntryFlags, EntryKind, EntryOptions, ErrorKind, Fit, Item,
    NewEntry, Region, RegionEntry, Sm, Suffix, TargetDevice, region, select, text,
};

fn fixture(name: &str) -> Vec<u8> {
    let path = format!("{}/../fixtures/fatbin/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn entries(bytes: &[u8]) -> Vec<RegionEntry<'_>> {
    Region::parse(bytes).unwrap().entries().collect::<Result<_, _>>().unwrap()
}

const LIMIT: usize = 1 << 20;

#[test]
fn every_method_gives_the_same_files() {
    for (name, method) in [
        ("none.fatbin", None),
        ("zlib.fatbin", Some(CompressionMethod::Zlib)),
        ("lz4.fatbin", Some(CompressionMethod::Lz4)),
        ("lz4-fast.fatbin", Some(CompressionMethod::Lz4)),
        ("lz4-frame.fatbin", Some(CompressionMethod::Lz4Frame)),
        ("zstd.fatbin", Some(CompressionMethod::Zstd)),
    ] {
        let bytes = fixture(name);
        let [elf, ptx] = entries(&bytes)[..] else { panic!("{name}") };
        assert_eq!(
            (elf.kind(), elf.sm(), elf.code_version()),
            (EntryKind::Elf, Sm::new(75), (1, 8)),
            "{name}"
        );
        assert_eq!(
            (ptx.kind(), ptx.sm(), ptx.code_version()),
            (EntryKind::Ptx, Sm::new(75), (8, 0)),
            "{name}"
        );
        for entry in [elf, ptx] {
            assert_eq!(entry.compression(), method, "{name}");
            assert_eq!(entry.identifier(), "k.cu", "{name}");
            let flags = entry.flags().difference(EntryFlags::COMPRESSED);
            assert_eq!(flags, EntryFlags::ADDRESS_64 | EntryFlags::LINUX, "{name}");
        }
        assert_eq!(
            (elf.options(), ptx.options()),
            (EntryOptions::None, EntryOptions::Compiler(b"-O3 ")),
            "{name}"
        );
        assert!(elf.unpack(LIMIT).unwrap() == fixture("k75.cubin"), "{name}");
        let unpacked = ptx.unpack(LIMIT).unwrap();
        let stored = text(&unpacked);
        assert_eq!(
            String::from_utf8_lossy(stored).trim(),
            String::from_utf8_lossy(&fixture("k.ptx")).replace('\t', "").trim(),
            "{name}"
        );
    }
}

#[test]
fn suffixes() {
    let bytes = fixture("suffixes.fatbin");
    let [specific, family, ptx] = entries(&bytes)[..] else { panic!() };
    assert_eq!(specific.sm(), "90a".parse().unwrap());
    assert_eq!(family.sm(), "sm_100f".parse().unwrap());
    assert_eq!(ptx.sm().to_string(), "90a");
    for (entry, name) in [(specific, "k90a.cubin"), (family, "k100f.cubin")] {
        assert!(entry.flags().contains(EntryFlags::DEBUG));
        let cubin = fixture(name);
        assert_eq!(entry.unpack(LIMIT).unwrap(), cubin);
        let read = fatbin::CubinHeader::parse(&cubin).unwrap();
        // What the entry says is in the file, but for suffix f.
        assert_eq!(read.sm.number, entry.sm().number);
        assert_eq!(read.sm.suffix == Suffix::Specific, entry.sm().suffix == Suffix::Specific);
        let compat = read
            .compat
            .filter(|_| read.sm.number >= 100)
            .map_or(EntryOptions::None, EntryOptions::Compat);
        assert_eq!(entry.options(), compat);
        assert_eq!(entry.flags().contains(EntryFlags::COMPAT), compat != EntryOptions::None);
    }
}

#[test]
fn concatenated() {
    let bytes = fixture("concat.fatbin");
    let all = entries(&bytes);
    let outer = all.iter().find(|entry| entry.kind() == EntryKind::Concatenated).unwrap();
    let unpacked = outer.unpack(LIMIT).unwrap();
    let parts: Vec<_> = outer.parts().unwrap().iter().collect();
    assert_eq!(parts.len(), 3);
    for (part, (sm, name)) in
        parts.iter().zip([("75", "k75.cubin"), ("80", "k80.cubin"), ("90a", "k90a.cubin")])
    {
        assert_eq!((part.kind, part.sm), (EntryKind::Elf, sm.parse().unwrap()));
        assert_eq!(part.of(&unpacked).unwrap(), fixture(name));
    }
    let device = TargetDevice { sm: 86, driver: CudaVersion::new(13, 5) };
    let selected = select(Region::parse(&*bytes).unwrap().entries(), device).unwrap().unwrap();
    assert_eq!((selected.part, selected.fit), (Some(parts[1]), Fit::LowerMinor));
    let device = TargetDevice { sm: 90, ..device };
    let selected = select(Region::parse(&*bytes).unwrap().entries(), device).unwrap().unwrap();
    assert_eq!((selected.part, selected.fit), (Some(parts[2]), Fit::Exact));
}

#[test]
fn lto_is_obfuscated_when_compressed() {
    let bytes = fixture("lto-none.fatbin");
    let [plain] = entries(&bytes)[..] else { panic!() };
    assert_eq!((plain.kind(), plain.obfuscation_key()), (EntryKind::Nvvm, None));
    assert!(plain.unpack(LIMIT).unwrap().starts_with(&0x7f4e_43ed_u32.to_le_bytes()));
    let bytes = fixture("lto.fatbin");
    let [entry] = entries(&bytes)[..] else { panic!() };
    assert_eq!(entry.kind(), EntryKind::Nvvm);
    let key = entry.obfuscation_key().unwrap();
    assert_eq!(entry.unpack(LIMIT).unwrap_err().kind, ErrorKind::Obfuscated { key });
}

#[test]
fn libnvfatbin_12() {
    let bytes = fixture("nvfatbin-12.9.fatbin");
    let [elf, ptx] = entries(&bytes)[..] else { panic!() };
    assert_eq!(elf.unpack(LIMIT).unwrap(), fixture("k75.cubin"));
    assert_eq!((ptx.compression(), ptx.identifier()), (Some(CompressionMethod::Lz4), "a".into()));
}

/// CUDA 11 puts the options before the identifier, and leaves the size of a zlib stream at 0.
#[test]
fn the_order_of_cuda_11() {
    let new = fixture("zlib.fatbin");
    let entry = entries(&new)[1];
    let EntryOptions::Compiler(options) = entry.options() else { panic!() };
    let stored = entry.stored().bytes();
    let mut old = new[..entry.at() as usize].to_vec(); // the region header and the first entry stay
    let start = old.len();
    old.extend(&entry.bytes()[..0x40]);
    let mut put = |at: usize, value: u32| {
        old[start + at..start + at + 4].copy_from_slice(&value.to_le_bytes())
    };
    put(0x10, 0);
    put(0x14, 0x40);
    put(0x20, 0x50);
    for block in
        [&[0x48_u32.to_le_bytes(), (options.len() as u32).to_le_bytes()].concat(), options, b"k.cu"]
    {
        old.extend(block);
        old.resize(old.len().next_multiple_of(8), 0);
    }
    old.extend(stored);
    old.resize(new.len(), 0);
    let again = entries(&old)[1];
    assert_eq!((again.identifier(), again.options()), (entry.identifier(), entry.options()));
    assert_eq!(again.stored_size(), entry.stored_size());
    assert_eq!(again.unpack(LIMIT).unwrap(), entry.unpack(LIMIT).unwrap());
}

#[test]
fn a_region_built_again_is_the_same() {
    for name in [
        "none.fatbin",
        "zlib.fatbin",
        "lz4.fatbin",
        "lz4-fast.fatbin",
        "lz4-frame.fatbin",
        "zstd.fatbin",
        "suffixes.fatbin",
        "lto.fatbin",
        "lto-none.fatbin",
        "nvfatbin-12.9.fatbin",
        "concat.fatbin",
    ] {
        let bytes = fixture(name);
        let kept: Vec<Item<'_>> = entries(&bytes).into_iter().map(Item::from).collect();
        assert!(region(&kept).unwrap() == bytes, "{name}");
        let repacked = entries(&bytes).into_iter().map(|entry| {
            let compression = entry.compression().map(|method| (method, entry.unpacked_size()));
            let obfuscation_key = entry.obfuscation_key();
            Item::Repacked { entry, stored: entry.stored().bytes(), compression, obfuscation_key }
        });
        let repacked: Vec<_> = repacked.collect();
        // a zlib stream that has no byte behind it
        assert!(region(&repacked).unwrap() == bytes || name == "zlib.fatbin", "{name}");
        // as new entries: obfuscated; the zlib stream
        let differs = ["lto.fatbin", "zlib.fatbin"].contains(&name);
        // all that they say is in the fields
        let new = entries(&bytes).into_iter().map(|entry| NewEntry {
            parts: &[],
            kind: entry.kind(),
            sm: entry.sm(),
            code_version: entry.code_version(),
            flags: entry.flags(),
            identifier: entry.identifier().as_bytes(),
            options: entry.options(),
            stored: entry.stored().bytes(),
            compression: entry.compression().map(|method| (method, entry.unpacked_size())),
        });
        let new: Vec<Item<'_>> = new.map(Item::from).collect();
        assert!(region(&new).unwrap() == bytes || differs || name == "concat.fatbin", "{name}");
    }
}

#[test]
fn recompression_keeps_the_payloads() {
    for name in ["none.fatbin", "concat.fatbin", "lz4.fatbin", "nvfatbin-12.9.fatbin"] {
        let bytes = fixture(name);
        for method in CompressionMethod::ALL {
            let entries = entries(&bytes);
            let unpacked: Vec<_> =
                entries.iter().map(|entry| entry.unpack(LIMIT).unwrap()).collect();
            let stored: Vec<_> =
                unpacked.iter().map(|payload| method.pack(payload).unwrap()).collect();
            let items =
                entries.iter().zip(&stored).zip(&unpacked).map(|((entry, stored), unpacked)| {
                    Item::Repacked {
                        entry: *entry,
                        stored,
                        compression: Some((method, unpacked.len() as u64)),
                        obfuscation_key: None,
                    }
                });
            let again = region(&items.collect::<Vec<_>>()).unwrap();
            for (old, new) in entries.iter().zip(self::entries(&again)) {
                assert_eq!(new.compression(), Some(method));
                assert_eq!(
                    (old.kind(), old.sm(), old.options()),
                    (new.kind(), new.sm(), new.options())
                );
                assert_eq!(
                    old.parts().unwrap().iter().collect::<Vec<_>>(),
                    new.parts().unwrap().iter().collect::<Vec<_>>()
                );
                assert!(old.unpack(LIMIT).unwrap() == new.unpack(LIMIT).unwrap());
            }
        }
    }
}

#[test]
fn a_region_built_from_files_is_what_fatbinary_builds() {
    let (cubin, original) = (fixture("k75.cubin"), fixture("none.fatbin"));
    let ptx = entries(&original)[1].unpack(LIMIT).unwrap().into_owned();
    let mut elf = NewEntry::cubin(&cubin).unwrap();
    let mut ptx = NewEntry::ptx(&ptx).unwrap();
    (elf.identifier, ptx.identifier, ptx.options) =
        (b"k.cu", b"k.cu", EntryOptions::Compiler(b"-O3 "));
    assert!(region(&[elf.into(), ptx.into()]).unwrap() == original);

    let (specific, family) = (fixture("k90a.cubin"), fixture("k100f.cubin"));
    let built = [NewEntry::cubin(&specific).unwrap(), NewEntry::cubin(&family).unwrap()];
    let built = [built[0], built[1].with_sm("100f".parse().unwrap())];
    let original = fixture("suffixes.fatbin");
    for (new, old) in built.iter().zip(entries(&original)) {
        assert_eq!(
            (new.sm, new.code_version, new.options),
            (old.sm(), old.code_version(), old.options())
        );
        assert_eq!(
            new.flags.bits() | new.sm.suffix.flag().bits(),
            old.flags().difference(EntryFlags::COMPRESSED | EntryFlags::DEBUG).bits()
        );
    }
}

#[test]
fn what_is_packed_unpacks() {
    let long: Vec<u8> =
        (0..300_000_u32).flat_map(|n| (n / 7).wrapping_mul(n % 11).to_le_bytes()).collect();
    for payload in [fixture("k75.cubin"), b"tiny\0".to_vec(), vec![0; 200_000], long] {
        for method in CompressionMethod::ALL {
            let stored = method.pack(&payload).unwrap();
            let ptx = NewEntry::ptx(b".version 8.0 .target sm_75\0").unwrap();
            let new = NewEntry { stored: &payload, ..ptx }.compressed(method, &stored);
            let bytes = region(&[new.into()]).unwrap();
            let [entry] = entries(&bytes)[..] else { panic!() };
            assert_eq!(entry.compression(), Some(method));
            let behind = entry.stored_size() - stored.len() as u64;
            assert!(
                behind > 0 || method != CompressionMethod::Zlib,
                "cuobjdump reads past a zlib stream"
            );
            assert!(entry.unpack(1 << 24).unwrap() == payload, "{method}");
        }
    }
}

#[test]
fn lies_about_sizes_are_errors_with_their_offset() {
    let good = fixture("zstd.fatbin");
    let change = |at: usize, bytes: &[u8]| {
        let mut bad = good.clone();
        bad[at..at + bytes.len()].copy_from_slice(bytes);
        let region = Region::parse(&*bad);
        let error = match region {
            Err(error) => Some(error),
            Ok(region) => region
                .entries()
                .find_map(|entry| entry.and_then(|entry| entry.unpack(LIMIT).map(|_| ())).err()),
        };
        error.map(|error| (error.at, error.to_string())).unwrap()
    };
    let outside = |at, message: &str| (at, message.to_string());
    assert_eq!(change(0, b"x"), outside(0, "no region at offset 0x0: it starts with 0xba55ed78"));
    assert_eq!(change(4, &[3]), outside(4, "region version is 0x3 at offset 0x4"));
    assert_eq!(change(6, &[15]), outside(6, "region header size is 0xf at offset 0x6"));
    assert_eq!(
        change(8, &[0xff; 8]),
        outside(0, "region of 0xffffffffffffffff bytes at offset 0x0, where 0x470 are left")
    );
    assert_eq!(change(0x14, &[0x3f]), outside(0x14, "entry header size is 0x3f at offset 0x14"));
    assert_eq!(
        change(0x18, &[0xff; 8]),
        outside(0x58, "payload of 0xffffffffffffffff bytes at offset 0x58, where 0x418 are left")
    );
    assert_eq!(
        change(0x20, &[0xff; 4]),
        outside(0x20, "compressed size is 0xffffffff at offset 0x20")
    );
    assert_eq!(
        change(0x30, &[0x46]),
        outside(0x56, "identifier of 0x4 bytes at offset 0x56, where 0x2 are left")
    );
    assert_eq!(
        change(0x34, &[9]),
        outside(0x50, "identifier of 0x9 bytes at offset 0x50, where 0x8 are left")
    );
    assert_eq!(change(0x39, &[0xb0]), outside(0x38, "compression is 0xb000 at offset 0x38"));
    // A claim that the stored bytes cannot hold: 1 TB.
    let (at, message) = change(0x48, &(1_u64 << 40).to_le_bytes());
    assert_eq!(at, 0x48);
    assert!(
        message.starts_with("1099511627776 bytes claimed at offset 0x48, where zstd can hold"),
        "{message}"
    );
    // One that they could hold, but that the caller does not allow; one that is merely wrong.
    assert_eq!(
        change(0x48, &(2_u64 << 20).to_le_bytes()).1,
        "2097152 bytes to unpack at offset 0x58, more than the limit of 1048576"
    );
    assert_eq!(
        change(0x48, &2857_u64.to_le_bytes()).1,
        "the payload at offset 0x58 unpacks to 2856 bytes, not 2857"
    );
    assert_eq!(change(0x48, &2855_u64.to_le_bytes()).1, "damaged zstd payload at offset 0x58");
}

/// A concatenated entry built anew is that of fatbinary, byte for byte.
#[test]
fn concatenated_again() {
    let bytes = fixture("concat.fatbin");
    let [outer] = entries(&bytes)[..] else { panic!() };
    let parts: Vec<_> = outer.parts().unwrap().iter().collect();
    let unpacked = outer.unpack(LIMIT).unwrap();
    let entry = NewEntry::concatenated(&parts, &unpacked);
    let packed = NewEntry {
        identifier: outer.identifier().as_bytes(),
        ..entry.compressed(outer.compression().unwrap(), outer.stored().bytes())
    };
    let built = region(&[packed.into()]).unwrap();
    assert_eq!(built, bytes);
    let plain = region(&[entry.into()]).unwrap();
    assert_eq!(entries(&plain)[0].unpack(LIMIT).unwrap()[..unpacked.len()], unpacked[..]);
    assert_eq!(entries(&plain)[0].parts().unwrap().iter().collect::<Vec<_>>(), parts);
}
