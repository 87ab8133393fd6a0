//! Opening the database.

use std::ffi::OsStr;
use std::fs::DirBuilder;
use std::path::Path;
use std::string::String;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use crate::error::CacheError;

/// How long another process may hold the database: longer than any transaction takes, shorter than most compilations.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(2);

const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS image (
        key BLOB PRIMARY KEY NOT NULL, sum BLOB NOT NULL, size INTEGER NOT NULL, used INTEGER NOT NULL, content BLOB NOT NULL
    ) STRICT;
    CREATE INDEX IF NOT EXISTS age ON image (used, size);
";

fn open(error: rusqlite::Error) -> CacheError {
    CacheError::Open(Arc::new(error))
}

/// Makes the folder, for its owner alone.
pub(super) fn folder(path: &Path) -> Result<(), CacheError> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(|error| CacheError::Open(Arc::new(error)))
}

/// The database, made if it is not there, emptied if it is damaged; whether it was.
pub(super) fn for_writing(path: &Path) -> Result<(Connection, bool), CacheError> {
    match prepared(path, false) {
        Err(error) if is_damage(&error) => {
            prepared(path, true).map(|connection| (connection, true)).map_err(open)
        }
        outcome => outcome.map(|connection| (connection, false)).map_err(open),
    }
}

fn prepared(path: &Path, reset: bool) -> rusqlite::Result<Connection> {
    let mut connection =
        Connection::open_with_flags(path, OpenFlags::default() | OpenFlags::SQLITE_OPEN_NOFOLLOW)?;
    connection.busy_timeout(PATIENCE)?;
    if reset {
        // in place: other processes may have it open
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_RESET_DATABASE, true)?;
        let emptied = connection.execute_batch("VACUUM");
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_RESET_DATABASE, false)?;
        emptied?;
    }
    // a commit is safe from the death of a process; from that of the machine, all but the latest
    let modes =
        "PRAGMA auto_vacuum = FULL; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;";
    patiently(|| connection.execute_batch(modes))?;
    connection.set_transaction_behavior(TransactionBehavior::Immediate);
    let tables: i64 = connection.query_row(
        "SELECT count(*) FROM sqlite_schema WHERE name IN ('image', 'age')",
        [],
        |row| row.get(0),
    )?;
    if tables < 2 {
        let transaction = connection.transaction()?;
        transaction.execute_batch(SCHEMA)?;
        transaction.commit()?;
    }
    Ok(connection)
}

/// Tries again while another process holds the database. SQLite itself waits for most locks; but of several who make a database at once,
/// each waiting for the others to let it change the mode of the journal, it refuses all but one at once.
fn patiently<T>(mut attempt: impl FnMut() -> rusqlite::Result<T>) -> rusqlite::Result<T> {
    let start = Instant::now();
    loop {
        match attempt() {
            Err(error) if is_busy(&error) && start.elapsed() < PATIENCE => {
                std::thread::sleep(PAUSE);
            }
            outcome => return outcome,
        }
    }
}

/// The database, if it is there.
pub(super) fn for_reading(path: &Path) -> Result<Option<Connection>, CacheError> {
    if !path.try_exists().map_err(|error| CacheError::Open(Arc::new(error)))? {
        return Ok(None);
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let usable = |connection: Connection| {
        connection.busy_timeout(PATIENCE)?;
        connection.query_row("SELECT count(*) FROM image", [], |_| Ok(()))?;
        Ok(connection)
    };
    match Connection::open_with_flags(path, flags).and_then(usable) {
        Ok(connection) => Ok(Some(connection)),
        // on a disk that cannot be written, readers cannot take locks, and nobody needs them
        Err(error) if is_read_only(&error) => {
            let flags = flags | OpenFlags::SQLITE_OPEN_URI;
            Connection::open_with_flags(uri(path), flags).and_then(usable).map(Some).map_err(open)
        }
        Err(error) => Err(open(error)),
    }
}

/// Whether another process holds the database.
pub(super) fn is_busy(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    matches!(code, Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// Whether the database is damaged, rather than out of reach.
pub(super) fn is_damage(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    matches!(code, Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

fn is_read_only(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen))
}

/// The database as something that never changes.
fn uri(path: &Path) -> String {
    let mut uri = String::from("file:");
    for &byte in AsRef::<OsStr>::as_ref(path).as_encoded_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => {
                uri.push(byte.into())
            }
            byte => uri.push_str(&format!("%{byte:02x}")),
        }
    }
    uri.push_str("?immutable=1");
    uri
}
