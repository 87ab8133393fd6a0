//! Python's extension modules out of bytes do what they do by `dlopen`; and so they do beside an interpreter out of bytes.
#![cfg(test)]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests; what they share is not under cfg(test)"
)]

mod system;

#[path = "../examples/python_modules/modules.rs"]
mod modules;

use modules::{Main, Modules, Needed, Python};
use std::ffi::{CString, c_char, c_int};
use std::path::PathBuf;
use system::{ARCH, itself};

/// How a child process is to load the modules.
const WAY: &str = "HOIST_PYTHON_WAY";
/// The library of the interpreter, and the folder of its modules.
const LIBRARY: &str = "HOIST_PYTHON_LIBRARY";
const FOLDER: &str = "HOIST_PYTHON_FOLDER";

/// Work for modules that most distributions have as files. Those that are not there are told, as all is.
const WORK: &str = r#"
import importlib, sys
def work(name, run):
    try:
        module = importlib.import_module(name)
    except ImportError:
        return print('NO', name)
    print(name, run(module))
def raised(kind, run):
    try: run()
    except kind as error: return type(error).__name__ + str(error)[:40]
from fractions import Fraction
import threading
work('_json', lambda m: (__import__('json').loads('{"a": [1, 2.5, "\\u00e9"]}'), raised(ValueError, lambda: __import__('json').loads('[1,'))))
work('_bz2', lambda m: __import__('bz2').decompress(__import__('bz2').compress(b'ab' * 1000)) == b'ab' * 1000)
work('_lzma', lambda m: __import__('lzma').decompress(__import__('lzma').compress(b'ab' * 1000)) == b'ab' * 1000)
work('_hashlib', lambda m: [__import__('hashlib').new(n, b'x').hexdigest() for n in ('sha256', 'md5', 'sha3_256', 'blake2b')])
work('_decimal', lambda m: (str(m.Decimal(2).sqrt()), raised(ArithmeticError, lambda: m.Decimal(1) / 0), m.getcontext().prec))
work('_sqlite3', lambda m: __import__('sqlite3').connect(':memory:').execute("select sum(value), count(*) from json_each('[1,2,3]')").fetchall())
def shake(m):
    import ssl
    one, other = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(one, other, server_hostname='example.org')
    raised(ssl.SSLError, client.do_handshake)
    return other.pending > 100, ssl.OPENSSL_VERSION, raised(ssl.SSLError, lambda: (one.write(b'no TLS at all'), client.do_handshake()))
work('_ssl', shake)
def foreign(m):
    import ctypes
    compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))(lambda a, b: a[0] - b[0])
    numbers = (ctypes.c_int * 5)(5, 3, 4, 1, 2)
    ctypes.CDLL(None).qsort(numbers, 5, 4, compare)
    return list(numbers), ctypes.sizeof(ctypes.c_void_p)
work('_ctypes', foreign)
work('_asyncio', lambda m: __import__('asyncio').run(__import__('asyncio').sleep(0, 'slept')))
work('_contextvars', lambda m: m.copy_context().run(len, 'abc'))
work('_queue', lambda m: raised(m.Empty, m.SimpleQueue().get_nowait))
work('_zoneinfo', lambda m: m.ZoneInfo.__name__)
work('_uuid', lambda m: m.has_uuid_generate_time_safe)
work('_multibytecodec', lambda m: 'é本'.encode('shift_jis', 'replace') + '本'.encode('gb18030') + '本'.encode('euc_kr', 'replace') + '本'.encode('iso2022_jp'))
work('_lsprof', lambda m: type(m.Profiler()).__name__)
work('_curses', lambda m: m.version)
work('_crypt', lambda m: m.crypt('a', '$6$ab$')[:12])
work('mmap', lambda m: len(m.mmap(-1, 4096)))
work('resource', lambda m: m.getrlimit(m.RLIMIT_CORE) is not None)
work('termios', lambda m: raised(m.error, lambda: m.tcgetattr(__import__('os').open('/dev/null', 0))))
work('audioop', lambda m: m.rms(b'\1\2\3\4', 2))
work('readline', lambda m: m.get_history_length())
work('_testcapi', lambda m: m.test_config() if hasattr(m, 'test_config') else None)
def threads():
    found = []
    all = [threading.Thread(target=lambda n=n: found.append(str(__import__('decimal').getcontext().divide(n, 7)))) for n in range(8)]
    [thread.start() for thread in all]; [thread.join() for thread in all]
    return sorted(found)
print(threads(), Fraction(1, 3))
"#;

/// The part of a child process.
#[test]
fn child() {
    let Ok(way) = std::env::var(WAY) else { return };
    let [library, folder] =
        [LIBRARY, FOLDER].map(|name| PathBuf::from(std::env::var(name).unwrap()));
    let needed = Needed::default();
    let python = match &*way {
        "bytes" => Python::of_bytes(&library, &needed).unwrap(),
        _ => Python::of_loader(library.to_str().unwrap()).unwrap(),
    };
    if way != "dlopen" {
        let modules = Modules::load(&python, &folder, &needed).unwrap();
        // what it lacks is told by its import
        modules.announce(&python).unwrap();
        std::mem::forget(modules);
    }
    // SAFETY: the function has this type.
    let main =
        unsafe { std::mem::transmute::<usize, Main>(python.function("Py_BytesMain").unwrap()) };
    std::mem::forget((python, needed));
    let words = ["/usr/bin/python3", "-I", "-c", WORK].map(|word| CString::new(word).unwrap());
    let mut words: Vec<*const c_char> = words.iter().map(|word| word.as_ptr()).collect();
    let count = c_int::try_from(words.len()).unwrap();
    words.push(std::ptr::null());
    // SAFETY: so many arguments, and a null pointer; ends as a program does that returns.
    unsafe { libc::exit(main(count, words.as_ptr())) }
}

/// The library of an interpreter of Debian's, and the folder of its modules.
fn interpreter() -> Option<(PathBuf, PathBuf)> {
    (9..20).rev().find_map(|minor| {
        let library = format!("/usr/lib/{ARCH}-linux-gnu/libpython3.{minor}.so.1.0");
        let folder = format!("/usr/lib/python3.{minor}/lib-dynload");
        let found = [library, folder].map(PathBuf::from);
        found.iter().all(|path| path.exists()).then(|| found.into())
    })
}

#[test]
fn modules_do_what_they_do_by_the_dynamic_loader() {
    let Some((library, folder)) = interpreter().filter(|_| cfg!(target_env = "gnu")) else {
        println!(
            "skipped: modules_do_what_they_do_by_the_dynamic_loader: needs libpython3 of Debian"
        );
        return;
    };
    let run = |way: &str| {
        let mut child = itself();
        child.args(["--exact", "child", "--nocapture"]).env(WAY, way);
        let output = child.env(LIBRARY, &library).env(FOLDER, &folder).output().unwrap();
        let [out, told] =
            [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it).into_owned());
        assert!(output.status.success(), "{way}: {}: {out}{told}", output.status);
        (out, told)
    };
    let (expected, _) = run("dlopen");
    let lines = expected.lines().filter(|line| !line.starts_with("NO ")).count();
    assert!(lines > 10, "{expected}");
    for way in ["modules", "bytes"] {
        let (found, told) = run(way);
        assert_eq!(found, expected, "{way}: {told}");
        let loaded = told.lines().filter(|line| line.starts_with("LOADED ")).count();
        assert!(loaded > 10, "{way}: {told}");
        println!("{way}: {loaded} modules");
    }
}
