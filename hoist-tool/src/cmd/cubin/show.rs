//! `hoist cubin show FILE [KERNEL]`.

use std::cmp::Reverse;
use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use fatbin::Sm;
use nvinfo::Cubin;

use super::kernel::Kernel;
use super::look::{Request, each_cubin, each_report, place};
use super::shown::{Shown, report};
use super::{svg, text};
use crate::cmd::fatbin::cubins::ImagePlace;
use crate::json::JsonArguments;
use crate::kernel_filter::{KernelFilter, KernelOrder};
use crate::kernel_name::Text;
use crate::output;
use crate::panel;
use crate::pattern::Pattern;

/// Shows kernels and what they need, then the module.
#[derive(Debug, clap::Args)]
pub(crate) struct Show {
    /// A cubin, an archive of them, or what has cubins inside: a fatbin, a host object, a library.
    file: PathBuf,
    /// Kernels in detail: by name, mangled or not, `gemm*`, or `/REGEX/`.
    kernel: Option<Pattern>,
    #[command(flatten)]
    filter: KernelFilter,
    /// Threads of a block that occupancy is given for: otherwise those that the kernel names, or 256.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    threads: Option<u32>,
    #[command(flatten)]
    json: JsonArguments,
    /// Draws what kernels take, and how many warps an SM runs by the size of their blocks, as an SVG file.
    #[arg(long, conflicts_with_all = ["json", "json_lines"])]
    svg: bool,
    /// The file to draw to; otherwise standard output.
    #[arg(short, long, value_name = "FILE", requires = "svg")]
    output: Option<PathBuf>,
}

impl Show {
    pub(crate) fn run(&self, arch: Option<Sm>, out: &mut dyn Write) -> Result<()> {
        let wanted = self.filter.wanted(self.kernel.as_ref());
        let request = Request::new((&self.file, arch), &self.json, ("kernel", &wanted));
        let make = |cubin: &Cubin<'_>| {
            let mut shown = report(cubin, &wanted, self.threads)?;
            if let Some(shown) = &mut shown {
                order(&self.filter, &mut shown.kernels);
            }
            Ok(shown)
        };
        if self.svg {
            return self.draw(request, make, out);
        }
        each_report(request, out, make, |shown, out| text::shown(shown, self.filter.raw, out))
    }

    /// One picture of all kernels.
    fn draw(
        &self,
        request: Request<'_>,
        make: impl Fn(&Cubin<'_>) -> Result<Option<Shown>> + Sync,
        out: &mut dyn Write,
    ) -> Result<()> {
        let look =
            |label: &str, member: &Option<Text>, image: Option<&ImagePlace>, bytes: &[u8]| {
                let Some(shown) = make(&Cubin::parse(bytes)?)? else { return Ok(None) };
                let place = place(label, member, image).concat();
                let panels =
                    shown.kernels.iter().map(|one| svg::panel(one, &place, self.filter.raw));
                anyhow::Ok(Some(panels.collect::<Vec<_>>()))
            };
        let mut panels = Vec::new();
        each_cubin(request, look, |more| svg::add(&mut panels, more))?;
        output::text(self.output.as_deref(), out, |out| panel::write("kernels", &panels, out))
    }
}

/// Puts kernels in order, and leaves out those beyond the limit.
fn order(filter: &KernelFilter, kernels: &mut Vec<Kernel>) {
    match filter.sort {
        None => {}
        Some(KernelOrder::Size) => kernels.sort_by_key(|one| Reverse(one.code_size)),
        Some(KernelOrder::Registers) => kernels.sort_by_key(|one| Reverse(one.registers)),
        Some(KernelOrder::Name) => {
            kernels.sort_by(|one, other| one.readable().cmp(other.readable()))
        }
    }
    kernels.truncate(filter.limit.unwrap_or(usize::MAX));
}
