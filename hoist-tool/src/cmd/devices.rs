//! `hoist devices`: the NVIDIA GPUs of this machine.

use std::fmt::Display;
use std::io::Write;
use std::sync::Arc;

use anyhow::Result;
use exec_nv::{DeviceProperties, Driver, NvDevice, NvOptions};
use serde::Serialize;

use crate::json::JsonArguments;
use crate::table::Table;

/// Lists the NVIDIA GPUs of this machine.
#[derive(Debug, clap::Args)]
pub struct Devices {
    #[command(flatten)]
    json: JsonArguments,
    /// Asks the kernel driver itself: without CUDA
    #[cfg(target_os = "linux")]
    #[arg(long)]
    raw: bool,
}

/// A GPU as JSON has it.
#[derive(Debug, Serialize)]
struct Row<'p> {
    device: u32,
    name: &'p str,
    uuid: String,
    pci: String,
    sm: u32,
    memory: u64,
    sm_count: u32,
    max_threads: u32,
    max_registers: u32,
    shared: u32,
    shared_opt_in: u32,
    shared_reserved: u32,
    l2_cache: u32,
    cooperative_launch: bool,
    cluster_launch: bool,
    memory_pools: bool,
    managed_memory: bool,
}

impl Devices {
    /// Prints the list to `out`.
    ///
    /// # Errors
    /// If there is no driver or no GPU.
    pub fn run(&self, out: &mut dyn Write) -> Result<()> {
        #[cfg(target_os = "linux")]
        if self.raw {
            let (version, devices) = without_cuda()?;
            let devices: Vec<_> = devices.iter().collect();
            return self.print(("driver", &version), &devices, out);
        }
        let driver = Arc::new(Driver::open()?);
        let devices = (0..driver.device_count()?)
            .map(|ordinal| NvDevice::open(&driver, ordinal, NvOptions::default()))
            .collect::<Result<Vec<_>, _>>()?;
        let devices: Vec<_> = devices.iter().map(NvDevice::properties).collect();
        self.print(("driver_cuda", &driver.version().to_string()), &devices, out)
    }

    /// Prints devices, and the driver's version as JSON names it.
    fn print(
        &self,
        (key, version): (&str, &str),
        devices: &[&DeviceProperties],
        out: &mut dyn Write,
    ) -> Result<()> {
        let rows: Vec<_> = (0..).zip(devices).map(|(device, one)| row(device, one)).collect();
        if self.json.is_on() {
            let report = serde_json::json!({ key: version, "devices": rows });
            crate::json::write(out, &report)?;
            return Ok(writeln!(out)?);
        }
        let of = if key == "driver" { "" } else { "CUDA " };
        writeln!(out, "driver: {of}{version}")?;
        let mut table = Table::new(out);
        let shared = "shared memory of a block";
        table.heading(["device", "name", "architecture", "memory", "SMs", shared, "PCI"])?;
        for row in &rows {
            let (shared, opt_in) = (row.shared >> 10, row.shared_opt_in >> 10);
            let cells: [&dyn Display; _] = [
                &row.device,
                &row.name,
                &format_args!("sm_{}", row.sm),
                &format_args!("{} MiB", row.memory >> 20),
                &row.sm_count,
                &format_args!("{shared} KiB, {opt_in} KiB if asked for"),
                &row.pci,
            ];
            table.row(cells)?;
        }
        table.end()
    }
}

/// The driver's version, and the devices that it knows.
#[cfg(target_os = "linux")]
fn without_cuda() -> Result<(String, Vec<DeviceProperties>)> {
    use exec_nv::raw::{Client, Linux, RawDevice, RawOptions};

    let client = Client::open(Linux)?;
    let (version, count) = (client.version().to_string(), client.cards()?.len());
    let open = |index| RawDevice::open(Linux, index, RawOptions::default());
    let devices = (0..count).map(|index| Ok(open(index)?.properties().clone()));
    Ok((version, devices.collect::<Result<_>>()?))
}

fn row(device: u32, found: &DeviceProperties) -> Row<'_> {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let [domain, bus, slot] = found.pci;
    Row {
        device,
        name: &found.name,
        uuid: hex(&found.uuid),
        pci: format!("{domain:04x}:{bus:02x}:{slot:02x}"),
        sm: found.sm,
        memory: found.memory,
        sm_count: found.sm_count,
        max_threads: found.max_threads,
        max_registers: found.max_registers,
        shared: found.shared,
        shared_opt_in: found.shared_opt_in,
        shared_reserved: found.shared_reserved,
        l2_cache: found.l2_cache,
        cooperative_launch: found.cooperative_launch,
        cluster_launch: found.cluster_launch,
        memory_pools: found.memory_pools,
        managed_memory: found.managed_memory,
    }
}
