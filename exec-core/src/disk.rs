//! The cache on disk: one SQLite database.
//!
//! Why SQLite and not a store of files such as `cacache`: a bound in bytes with the least recently used out first needs one
//! place where sizes and times are known and changed together with the content, by several processes that may die at any
//! moment. That is a transaction. A store of files has content and an index that only grows, and would need a lock and a journal
//! of our own for the rest. The price is a C compiler at build time, hence the feature.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::string::String;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use std::vec::Vec;
use std::{env, fs};

use rusqlite::{Connection, OptionalExtension as _, params};
use sha2::{Digest as _, Sha256};

use crate::cache::{Cache, CacheMode, Lookup};
use crate::error::CacheError;
use crate::key::Key;
use crate::sync::Mutex;

mod open;
mod recent;
mod trust;

use recent::Recent;

/// Images on disk, for any number of processes at once. Whoever can write there, can make its users run any code: its folder
/// is made for its owner alone, and one in which others have a hand is [refused](CacheError::Untrusted).
///
/// A process may be killed at any moment: what was put in before is there, what was being put in is there or not. Every image is
/// checked against a sum before it is given out. Those that were asked for lately stay in
/// [memory](Self::with_memory) and are given out from there, as long as no process changes the database.
///
/// ```
/// use exec_core::{Cache as _, CacheMode, DiskCache, Identity, Key, Lookup};
///
/// # let folder = tempfile::tempdir()?;
/// # let folder = folder.path();
/// let cache = DiskCache::open(folder, CacheMode::ReadWrite, 64 << 20)?;
/// let compiler = Identity { name: "cc", version: "14.2", target: "x86-64", options: &[] };
/// let key = Key::of(&compiler, "int one(void) { return 1; }");
/// assert!(matches!(cache.get(&key)?, Lookup::Miss));
/// cache.put(&key, b"an object")?;
/// assert!(matches!(cache.get(&key)?, Lookup::Hit(image) if *image == *b"an object"));
/// assert_eq!(cache.stats()?.images, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct DiskCache {
    mode: CacheMode,
    /// The database, and what is written before it is in there.
    paths: [PathBuf; 2],
    limit: u64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// None if the cache is off, or for reading and not there.
    connection: Option<Connection>,
    /// The whole database was damaged and is empty now: the next miss says so.
    was_damaged: bool,
    /// Hits and their times, which are written down with the next image: reading stays reading.
    touched: HashMap<Key, i64>,
    recent: Recent,
}

/// What is in a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Number of images.
    pub images: u64,
    /// Bytes of all images.
    pub bytes: u64,
    /// Bytes of the files on disk.
    pub file_bytes: u64,
}

/// What [`DiskCache::verify`] found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Images that are what was put in.
    pub good: u64,
    /// Images that are not. They are gone now, unless the cache is for reading only.
    pub damaged: u64,
    /// Whether the database itself is in order.
    pub is_sound: bool,
}

/// The file in the folder; the number is that of its form.
const DATABASE: &str = "images-1.db";
/// Bytes of images that stay in memory, unless told otherwise.
const MEMORY: usize = 16 << 20;
/// Hits that are remembered before they are written down.
const TOUCHED: usize = 1024;

/// Where caches of the user are, if that is known: `HOIST_CACHE_DIR`, else `hoist` in `XDG_CACHE_HOME` or in `.cache` of the
/// home directory.
#[must_use]
pub fn default_folder() -> Option<PathBuf> {
    let variable =
        |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    variable("HOIST_CACHE_DIR").or_else(|| {
        let caches = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
        Some(caches?.join("hoist"))
    })
}

impl DiskCache {
    /// The cache in `folder`, made if need be, of at most `limit` bytes of images.
    ///
    /// A database that is none any more is emptied; the next miss is then [`Lookup::Damaged`].
    ///
    /// # Errors
    /// [`CacheError::Untrusted`] if others can write the folder or the database, if one of them belongs to another user or is a
    /// symbolic link; [`CacheError::Open`].
    pub fn open(folder: &Path, mode: CacheMode, limit: u64) -> Result<Self, CacheError> {
        if mode == CacheMode::ReadWrite {
            open::folder(folder)?;
        }
        let trusted = if mode == CacheMode::Off { None } else { trust::folder(folder, DATABASE)? };
        let path = trusted.as_deref().unwrap_or(folder).join(DATABASE);
        let (connection, was_damaged) = match mode {
            CacheMode::Off => (None, false),
            CacheMode::ReadOnly | CacheMode::Required => (open::for_reading(&path)?, false),
            CacheMode::ReadWrite => {
                open::for_writing(&path).map(|(connection, damaged)| (Some(connection), damaged))?
            }
        };
        let state =
            State { connection, was_damaged, touched: HashMap::new(), recent: Recent::new(MEMORY) };
        let log = path.with_extension("db-wal");
        Ok(Self { mode, paths: [path, log], limit, state: Mutex::new(state) })
    }

    /// The same for who compiles, with or without a cache: one that cannot be opened because it is full, locked, read-only or
    /// damaged is [off](CacheMode::Off), and the error is what to warn of. A cache that others can write is refused nevertheless, and one
    /// that must have the image ([`CacheMode::Required`]) has to open.
    ///
    /// # Errors
    /// [`CacheError::Untrusted`]; for [`CacheMode::Required`], those of [`open`](Self::open).
    pub fn open_or_off(
        folder: &Path,
        mode: CacheMode,
        limit: u64,
    ) -> Result<(Self, Option<CacheError>), CacheError> {
        match Self::open(folder, mode, limit) {
            Ok(cache) => Ok((cache, None)),
            Err(error @ CacheError::Untrusted { .. }) => Err(error),
            Err(error) if mode == CacheMode::Required => Err(error),
            Err(error) => Ok((Self::open(folder, CacheMode::Off, limit)?, Some(error))),
        }
    }

    /// The same, with at most so many bytes of images in memory; without this, 16 MiB. A single image is kept there if it has at
    /// most an eighth of them.
    #[must_use]
    pub fn with_memory(mut self, bytes: usize) -> Self {
        self.state.get_mut().recent = Recent::new(bytes);
        self
    }

    /// What is in it.
    ///
    /// # Errors
    /// [`CacheError::Read`].
    pub fn stats(&self) -> Result<Stats, CacheError> {
        let state = self.state.lock();
        let Some(connection) = &state.connection else { return Ok(Stats::default()) };
        let sizes = "SELECT count(*), coalesce(sum(size), 0) FROM image";
        let (images, bytes): (i64, i64) =
            connection.query_row(sizes, [], |row| Ok((row.get(0)?, row.get(1)?))).map_err(read)?;
        let sizes = self.paths.iter().map(|path| fs::metadata(path).map_or(0, |file| file.len()));
        let file_bytes = sizes.fold(0, u64::saturating_add);
        Ok(Stats { images: images.unsigned_abs(), bytes: bytes.unsigned_abs(), file_bytes })
    }

    /// Empties it, and says what was in it.
    ///
    /// # Errors
    /// [`CacheError::Write`], [`CacheError::ReadOnly`].
    pub fn clear(&self) -> Result<Stats, CacheError> {
        let stats = self.stats()?;
        if self.mode != CacheMode::ReadWrite {
            return Err(CacheError::ReadOnly);
        }
        let mut state = self.state.lock();
        state.touched.clear();
        state.recent.clear();
        let Some(connection) = &state.connection else { return Ok(stats) };
        let statements = "DELETE FROM image; VACUUM; PRAGMA wal_checkpoint(TRUNCATE);";
        connection.execute_batch(statements).map_err(write)?;
        Ok(stats)
    }

    /// Reads everything, and removes what is damaged.
    ///
    /// # Errors
    /// [`CacheError::Read`], [`CacheError::Write`].
    pub fn verify(&self) -> Result<Verified, CacheError> {
        let mut found = Verified { is_sound: true, ..Verified::default() };
        let keys: Vec<Vec<u8>> = {
            let state = self.state.lock();
            let Some(connection) = &state.connection else { return Ok(found) };
            let verdict: String = connection
                .query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))
                .unwrap_or_default();
            found.is_sound = verdict == "ok";
            let mut all = connection.prepare("SELECT key FROM image").map_err(read)?;
            let keys = all.query_map([], |row| row.get(0)).and_then(Iterator::collect);
            keys.map_err(read)?
        };
        for key in keys {
            // one at a time, so that others get on with their work
            let mut state = self.state.lock();
            let Some(connection) = &state.connection else { break };
            match image(connection, &key).map_err(read)? {
                Lookup::Hit(_) => found.good = found.good.saturating_add(1),
                // somebody else removed it
                Lookup::Miss => {}
                Lookup::Damaged => {
                    found.damaged = found.damaged.saturating_add(1);
                    self.remove(&mut state, &key)?;
                }
            }
        }
        Ok(found)
    }

    fn database(&self) -> &Path {
        let [database, _] = &self.paths;
        database
    }

    fn remove(&self, state: &mut State, key: &[u8]) -> Result<(), CacheError> {
        match &state.connection {
            Some(connection) if self.mode == CacheMode::ReadWrite => {
                connection.execute("DELETE FROM image WHERE key = ?1", [key]).map_err(write)?;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Remembers that an image was used.
    fn touch(&self, state: &mut State, key: &Key) {
        if self.mode != CacheMode::ReadWrite {
            return;
        }
        state.touched.insert(*key, now());
        if state.touched.len() >= TOUCHED {
            // that it does not succeed makes the order of age worse, nothing else
            let _ = state.flush();
            state.touched.clear();
        }
    }

    /// Empties a database that SQLite cannot make sense of.
    fn rebuild(&self, state: &mut State) {
        if self.mode == CacheMode::ReadWrite {
            state.connection = None;
            // what cannot be mended is a miss from now on
            state.connection =
                open::for_writing(self.database()).ok().map(|(connection, _)| connection);
        }
    }
}

/// The image of a key, checked.
fn image(connection: &Connection, key: &[u8]) -> rusqlite::Result<Lookup> {
    let mut statement =
        connection.prepare_cached("SELECT sum, content FROM image WHERE key = ?1")?;
    let found = statement.query_row([key], |row| {
        // whatever type damage has given it
        let content = row.get_ref(1)?.as_blob().unwrap_or_default();
        let is_good = row.get_ref(0)?.as_blob().unwrap_or_default() == sum(key, content);
        Ok(if is_good { Lookup::Hit(content.to_vec()) } else { Lookup::Damaged })
    });
    Ok(found.optional()?.unwrap_or(Lookup::Miss))
}

/// What an image is checked by: it belongs to its key, too.
fn sum(key: &[u8], content: &[u8]) -> [u8; 32] {
    Sha256::new().chain_update(key).chain_update(content).finalize().into()
}

/// Microseconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

impl State {
    /// Waits no more for who has held the database for too long: compilations go on without it.
    fn give_up_waiting(&self, error: &rusqlite::Error) {
        if let Some(connection) = self.connection.as_ref().filter(|_| open::is_busy(error)) {
            // without it, the next one takes as long as this one
            let _ = connection.busy_timeout(Duration::ZERO);
        }
    }

    /// Writes down when images were used.
    fn flush(&mut self) -> rusqlite::Result<()> {
        let Some(connection) = &mut self.connection else { return Ok(()) };
        if self.touched.is_empty() {
            return Ok(());
        }
        let transaction = connection.transaction()?;
        touch(&transaction, &self.touched)?;
        transaction.commit()?;
        self.touched.clear();
        Ok(())
    }

    /// Keeps an image, and no more than `limit` bytes of them. Gives the keys of those that went.
    fn put(&mut self, key: &Key, image: &[u8], limit: u64) -> rusqlite::Result<Vec<Key>> {
        let Some(connection) = &mut self.connection else { return Ok(Vec::new()) };
        let transaction = connection.transaction()?;
        touch(&transaction, &self.touched)?;
        // the clock may go back: the newest is the newest nevertheless
        transaction
            .prepare_cached(
                "INSERT OR REPLACE INTO image (key, sum, size, content, used)
             SELECT ?1, ?2, ?3, ?4, max(?5, coalesce(max(used) + 1, 0)) FROM image",
            )?
            .execute(params![
                &key.as_bytes()[..],
                &sum(key.as_bytes(), image)[..],
                image.len() as i64,
                image,
                now()
            ])?;
        let gone = transaction.prepare_cached(
            "DELETE FROM image WHERE key IN (SELECT key FROM
               (SELECT key, sum(size) OVER (ORDER BY used DESC, key ROWS UNBOUNDED PRECEDING) AS running FROM image)
             WHERE running > ?1) RETURNING key",
        )?
        .query_map([i64::try_from(limit).unwrap_or(i64::MAX)], |row| {
            // whatever damage has made of it
            Ok(row.get_ref(0)?.as_blob().ok().and_then(|key| key.try_into().ok()))
        })?
        .filter_map(|key| key.map(|key| key.map(Key::from_bytes)).transpose())
        .collect::<rusqlite::Result<_>>()?;
        transaction.commit()?;
        self.touched.clear();
        Ok(gone)
    }
}

fn touch(connection: &Connection, touched: &HashMap<Key, i64>) -> rusqlite::Result<()> {
    let mut update =
        connection.prepare_cached("UPDATE image SET used = max(used, ?2) WHERE key = ?1")?;
    for (key, used) in touched {
        update.execute(params![&key.as_bytes()[..], used])?;
    }
    Ok(())
}

impl Cache for DiskCache {
    fn mode(&self) -> CacheMode {
        self.mode
    }

    fn get(&self, key: &Key) -> Result<Lookup, CacheError> {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        state.recent.refresh(&self.paths);
        if let Some(image) = state.recent.get(key) {
            let image = image.to_vec();
            self.touch(state, key);
            return Ok(Lookup::Hit(image));
        }
        let Some(connection) = &state.connection else { return Ok(Lookup::Miss) };
        match image(connection, key.as_bytes()) {
            Ok(Lookup::Hit(image)) => {
                state.recent.put(key, &image);
                self.touch(state, key);
                Ok(Lookup::Hit(image))
            }
            Ok(Lookup::Miss) if core::mem::take(&mut state.was_damaged) => Ok(Lookup::Damaged),
            Ok(Lookup::Miss) => Ok(Lookup::Miss),
            Ok(Lookup::Damaged) => {
                self.remove(state, key.as_bytes())?;
                Ok(Lookup::Damaged)
            }
            Err(error) if open::is_damage(&error) => {
                self.rebuild(state);
                Ok(Lookup::Damaged)
            }
            Err(error) => {
                state.give_up_waiting(&error);
                Err(read(error))
            }
        }
    }

    fn put(&self, key: &Key, image: &[u8]) -> Result<(), CacheError> {
        let size = image.len() as u64;
        if self.mode != CacheMode::ReadWrite {
            return Err(CacheError::ReadOnly);
        }
        if size > self.limit {
            return Err(CacheError::TooLarge { size, limit: self.limit });
        }
        let mut state = self.state.lock();
        state.recent.refresh(&self.paths);
        state.recent.remove(key);
        let outcome = match state.put(key, image, self.limit) {
            Err(error) if open::is_damage(&error) => {
                self.rebuild(&mut state);
                state.put(key, image, self.limit)
            }
            outcome => outcome,
        };
        let gone = outcome.map_err(|error| {
            state.give_up_waiting(&error);
            write(error)
        })?;
        gone.iter().for_each(|key| state.recent.remove(key));
        state.recent.put(key, image);
        state.recent.accept(&self.paths);
        Ok(())
    }
}

impl Drop for DiskCache {
    fn drop(&mut self) {
        let _ = self.state.get_mut().flush();
    }
}

fn read(error: rusqlite::Error) -> CacheError {
    CacheError::Read(Arc::new(error))
}

fn write(error: rusqlite::Error) -> CacheError {
    CacheError::Write(Arc::new(error))
}
