//! Files of an image that become others: layers with smaller libraries, and the texts that name them.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};

use super::layer::{Found, Layer};
use super::parts::{BLOBS, Image, Parts, plain};
use super::references::{Successor, Successors, updated};
use crate::budget::Budget;
use crate::cmd::fatbin::slim::digest;
use crate::cmd::fatbin::slim::host::Slimming;
use crate::mapped::Mapped;
use crate::printable::Printable;

/// What an image becomes.
pub struct New {
    /// New contents of files, by their numbers.
    pub contents: BTreeMap<usize, Mapped>,
    /// What is in the place of what is called by a digest.
    pub successors: Successors,
}

/// What a layer becomes.
struct Made {
    /// The tar file in it.
    tar: Successor,
    packed: Mapped,
}

impl Image<'_> {
    /// Layers that change, and then the texts that name them.
    ///
    /// # Errors
    /// If a layer cannot change, or nothing of what is kept is in any.
    pub fn changed(
        &self,
        parts: &Parts,
        how: &Slimming,
        budget: &Budget,
        found: &mut Found,
    ) -> Result<New> {
        let mut new = New { contents: BTreeMap::new(), successors: Successors::new() };
        for (&index, why) in &parts.layers {
            let (name, content) = self.content(index)?;
            let shown = || Printable::from(name).to_string();
            let layer = Layer::open(content, budget).with_context(shown)?;
            let made = smallest(&layer, (name, content.len() as u64), how, found);
            if let Some(Made { tar, packed }) = made.with_context(shown)? {
                if let Some(why) = why {
                    bail!(
                        "{}: says where files are in it ({why}), which is not written anew",
                        shown()
                    );
                }
                let (old, before) = (digest::of_slice(content), digest::of_slice(layer.tar()));
                check(name, &old)?;
                let is_named = self.is_named(&before, parts)?;
                ensure!(is_named, "{}: no configuration names it by its digest {before}", shown());
                let (digest, size) = (digest::of(&packed), packed.bytes().len() as u64);
                new.successors.insert(before, tar);
                new.successors.insert(old, Successor { digest, size });
                new.contents.insert(index, packed);
            }
            self.done_with(index);
        }
        found.tally.check()?;
        self.texts(parts, &mut new)?;
        Ok(new)
    }

    /// Texts that name what changed: a text may change because one that it names does.
    fn texts(&self, parts: &Parts, new: &mut New) -> Result<()> {
        for _ in 0..=parts.texts.len() {
            let mut is_last = true;
            for &index in &parts.texts {
                let (name, content) = self.content(index)?;
                let old = std::str::from_utf8(content)
                    .with_context(|| Printable::from(name).to_string())?;
                let text = updated(old, &new.successors);
                if text == old
                    || new.contents.get(&index).is_some_and(|new| new.bytes() == text.as_bytes())
                {
                    continue;
                }
                is_last = false;
                let text = Mapped::of(text.into_bytes());
                let (digest, size) = (digest::of(&text), text.bytes().len() as u64);
                let old = digest::of_slice(content);
                check(name, &old)?;
                new.successors.insert(old, Successor { digest, size });
                new.contents.insert(index, text);
            }
            if is_last {
                return Ok(());
            }
        }
        bail!("has texts that name one another in a circle")
    }
}

/// What a layer becomes, if anything changes: where a mode makes it no smaller, what it becomes without the mode.
fn smallest(
    layer: &Layer<'_>,
    (name, before): (&str, u64),
    how: &Slimming,
    found: &mut Found,
) -> Result<Option<Made>> {
    let mut own = Found::default();
    let mut made = made(layer, name, how, &mut own)?;
    let size = |made: &Made| made.packed.bytes().len() as u64;
    if let Some(after) = made.as_ref().map(size).filter(|_| how.is_for_size()) {
        let mut others = Found::default();
        let other = how.without_mode().map(|how| self::made(layer, name, &how, &mut others));
        let other = other.transpose()?.flatten();
        let least = other.as_ref().map_or(before, size);
        if after >= least {
            let stays = if other.is_some() { "what is kept of it" } else { "it" };
            own = Found { tally: own.tally, ..others };
            own.notes.insert(format!(
                "{} would have {after} bytes instead of {least}: {stays} stays as it is",
                Printable::from(name)
            ));
            made = other;
        }
    }
    found.extend(own);
    Ok(made)
}

/// What a layer becomes so, if anything changes.
fn made(layer: &Layer<'_>, name: &str, how: &Slimming, found: &mut Found) -> Result<Option<Made>> {
    let Some(tar) = layer.changed(name, how, found)? else { return Ok(None) };
    let (digest, size) = (digest::of(&tar), tar.bytes().len() as u64);
    Ok(Some(Made { tar: Successor { digest, size }, packed: layer.pack(tar)? }))
}

/// Whether a file that is called by a digest has it, and by one that is written anew.
fn check(name: &str, digest: &str) -> Result<()> {
    let own = Path::new(name).file_stem().unwrap_or_default().to_string_lossy();
    let is_digest = own.len() == 64 && own.bytes().all(|byte| byte.is_ascii_hexdigit());
    let shown = Printable::from(name);
    ensure!(!is_digest || own == digest, "{shown}: has the digest {digest}");
    let is_blob = Path::new(&plain(name)).starts_with(BLOBS);
    ensure!(!is_blob || is_digest, "{shown}: is called by no SHA-256: another is not written anew");
    Ok(())
}
