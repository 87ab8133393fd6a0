//! Brings up the first GPU without CUDA, as far as a scheduled channel, and says what the driver answered.

use exec_nv::raw::{Linux, RawDevice};

fn main() {
    match RawDevice::open(Linux, 0) {
        Ok(device) => println!(
            "driver {}, sm_{}, {} SMs, channel {:#x}, compute {:#x}, token {:#x}: scheduled",
            device.client().version(),
            device.sm,
            device.shape.sms(),
            device.classes.channel,
            device.classes.compute,
            device.token,
        ),
        Err(stopped) => {
            eprintln!("{stopped}");
            std::process::exit(1);
        }
    }
}
