//! `hoist fatbin offload pack -o OUT --image=file=..,triple=..,arch=..,kind=..`: as clang-offload-packager.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use fatbin::{ImageKind, NewImage, Producer, offload};

use crate::alone;
use crate::output;

/// Packs images into an OffloadBinary each, one after another, as clang-offload-packager does.
#[derive(Debug, clap::Args)]
pub struct Pack {
    /// An image: `file=FILE,triple=TRIPLE,arch=ARCH,kind=openmp|cuda|hip|sycl`, and other keys.
    #[arg(long, required = true, value_name = "KEY=VALUE,..", value_parser = image)]
    image: Vec<Description>,
    /// The file to write.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Prints JSON with stable keys.
    #[arg(long)]
    json: bool,
}

/// What the command line says of an image.
#[derive(Clone, Debug)]
struct Description {
    file: PathBuf,
    producer: Producer,
    kind: ImageKind,
    strings: Vec<(String, String)>,
}

fn image(text: &str) -> Result<Description, String> {
    let mut file = None;
    let mut producer = Producer(0);
    let mut strings = Vec::new();
    for pair in text.split(',') {
        let (key, value) =
            pair.split_once('=').ok_or_else(|| format!("{pair} is not KEY=VALUE"))?;
        match key {
            "file" => file = Some(PathBuf::from(value)),
            "kind" => {
                let all = [Producer::OPENMP, Producer::CUDA, Producer::OLD_HIP, Producer::SYCL];
                let found = all.into_iter().find(|producer| producer.name() == Some(value));
                producer = found.ok_or_else(|| format!("no programming model {value}"))?;
            }
            _ => strings.push((key.to_owned(), value.to_owned())),
        }
    }
    let file = file.ok_or("no file=FILE")?;
    let extension = file.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let kinds = (1..=6).map(ImageKind);
    let kind =
        kinds.into_iter().find(|kind| kind.name() == Some(extension)).unwrap_or(ImageKind(0));
    Ok(Description { producer, kind, strings, file })
}

impl Pack {
    /// Writes the file; prints nothing but JSON, if that is wanted.
    ///
    /// # Errors
    /// If a file cannot be read or written.
    pub fn run(&self, out: &mut dyn Write) -> Result<()> {
        let files: Vec<_> =
            self.image.iter().map(|image| alone::open(&image.file)).collect::<Result<_>>()?;
        let strings: Vec<Vec<(&str, &str)>> = self
            .image
            .iter()
            .map(|image| image.strings.iter().map(|(key, value)| (&**key, &**value)).collect())
            .collect();
        let images: Vec<_> = self
            .image
            .iter()
            .zip(&files)
            .zip(&strings)
            .map(|((image, file), strings)| NewImage {
                kind: image.kind,
                producer: image.producer,
                flags: 0,
                strings,
                payload: file.bytes(),
            })
            .collect();
        let bytes = offload(&images)?;
        output::write(&self.output, None, |file| {
            file.write_all(&bytes).with_context(|| self.output.display().to_string())
        })?;
        let out = &mut *output::beside(&self.output, out);
        if self.json {
            let (file, size) = (self.output.display().to_string(), bytes.len());
            let row = serde_json::json!({ "output": file, "size": size, "entries": images.len() });
            crate::json::write(out, &row)?;
            writeln!(out)?;
        }
        Ok(())
    }
}
