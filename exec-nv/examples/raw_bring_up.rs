//! Brings up the first GPU without CUDA, as far as a queue that answers, and says what the driver answered.

use exec_nv::raw::{Linux, RawDevice, RawOptions};

fn main() {
    match RawDevice::open(Linux, 0, RawOptions::default()) {
        Ok(device) => println!(
            "driver {}, {}, sm_{}, {} SMs, {:x?}: channels answer",
            device.gpu().client().version(),
            device.properties().name,
            device.properties().sm,
            device.properties().sm_count,
            device.gpu().classes(),
        ),
        Err(stopped) => {
            eprintln!("{stopped}");
            std::process::exit(1);
        }
    }
}
