//! A client of the resource manager: objects made, asked and freed.

use zerocopy::{FromBytes, IntoBytes};

use super::call::{Call, resource_manager, uvm};
use super::error::Error;
use super::layout::control::{FbGetInfo, GrGetInfo, GrInfo};
use super::layout::resource_manager::{
    CardInfo, CheckVersionStr, Nvos00, Nvos54, Nvos64, RegisterFd,
};
use super::layout::uvm::{Initialize, MmInitialize};
use super::status::Status;
use super::system::{Part, System};
use super::version::DriverVersion;

/// Number of an object of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Handle(pub u32);

/// The resource manager's file.
const CONTROL: &str = "/dev/nvidiactl";
/// `NV01_ROOT_CLIENT`.
const ROOT_CLIENT: u32 = 0x41;
/// Cards that `CARD_INFO` is asked for.
const CARDS: usize = 32;
/// `CHECK_VERSION_STR` that asks for the version only.
const QUERY: u32 = b'2' as u32;

/// The files of the driver and the root of all objects. When it is dropped, its files are closed, and with them goes all that was
/// made.
#[derive(Debug)]
pub struct Client<S: System> {
    system: S,
    control: S::File,
    uvm: S::File,
    /// Kept open: UVM holds on to the process's memory with it.
    _uvm_memory: Option<S::File>,
    root: Handle,
    version: DriverVersion,
}

impl<S: System> Client<S> {
    /// Opens the driver's files, asks for its version and makes a root.
    ///
    /// # Errors
    /// [`Error::Open`] without driver or permission, [`Error::Version`], what the driver refuses.
    pub fn open(system: S) -> Result<Self, Error> {
        let control = system.open(CONTROL)?;
        let mut query = CheckVersionStr { cmd: QUERY, ..Default::default() };
        let call = resource_manager::CHECK_VERSION_STR;
        // SAFETY: the structure of the call, which holds no address.
        unsafe { system.ioctl(&control, call, &mut [part(&mut query)])? };
        let version = DriverVersion::parse(&query.version_string)?;
        let uvm = system.open("/dev/nvidia-uvm")?;
        let uvm_memory = system.open("/dev/nvidia-uvm")?;
        let mut client = Self { system, control, uvm, _uvm_memory: None, root: Handle(0), version };
        client.root = client.alloc(Handle(0), ROOT_CLIENT, None::<&mut RegisterFd>)?;

        let mut initialize = Initialize::default();
        client.uvm(uvm::INITIALIZE, &mut initialize)?;
        Status(initialize.rm_status).check(uvm::INITIALIZE.name, uvm::INITIALIZE.number)?;
        // Where the process's memory cannot be watched, this fails, and nothing here needs it.
        let uvm_fd = client.system.descriptor(&client.uvm);
        let mut memory = MmInitialize { uvm_fd, rm_status: 0 };
        // SAFETY: as above.
        unsafe { client.system.ioctl(&uvm_memory, uvm::MM_INITIALIZE, &mut [part(&mut memory)])? };
        client._uvm_memory = Some(uvm_memory);
        Ok(client)
    }

    /// The driver's version.
    pub const fn version(&self) -> DriverVersion {
        self.version
    }

    /// The root of all objects.
    pub const fn root(&self) -> Handle {
        self.root
    }

    /// The operating system.
    pub const fn system(&self) -> &S {
        &self.system
    }

    /// Number of the control file in this process.
    pub fn control_descriptor(&self) -> i32 {
        self.system.descriptor(&self.control)
    }

    /// The GPUs that there are.
    ///
    /// # Errors
    /// What the system says.
    pub fn cards(&self) -> Result<Vec<CardInfo>, Error> {
        let mut cards = [CardInfo::default(); CARDS];
        self.call(resource_manager::CARD_INFO, &mut [part(&mut cards)])?;
        Ok(cards.into_iter().filter(|card| card.valid != 0).collect())
    }

    /// Opens the control file once more, for a mapping of memory of the host.
    ///
    /// # Errors
    /// What the system says.
    pub fn open_control(&self) -> Result<S::File, Error> {
        self.system.open(CONTROL)
    }

    /// Opens a file of the driver and ties it to this client.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn open_tied(&self, path: &str) -> Result<S::File, Error> {
        let file = self.system.open(path)?;
        let mut tie = RegisterFd { ctl_fd: self.control_descriptor() };
        // SAFETY: as above.
        unsafe { self.system.ioctl(&file, resource_manager::REGISTER_FD, &mut [part(&mut tie)])? };
        Ok(file)
    }

    /// Makes an object of a class under another one.
    ///
    /// # Errors
    /// [`Error::Refused`] with the class.
    pub(crate) fn alloc<P: FromBytes + IntoBytes>(
        &self,
        parent: Handle,
        class: u32,
        parameters: Option<&mut P>,
    ) -> Result<Handle, Error> {
        let size = parameters.as_ref().map_or(0, |_| size_of::<P>());
        let mut alloc = Nvos64 {
            h_root: self.root.0,
            h_object_parent: parent.0,
            h_class: class,
            params_size: size_of_parameters(size),
            ..Default::default()
        };
        self.with_parameters(resource_manager::ALLOC, &mut alloc, 16, parameters)?;
        Status(alloc.status).check(resource_manager::ALLOC.name, class)?;
        Ok(Handle(alloc.h_object_new))
    }

    /// Asks an object for something.
    ///
    /// # Errors
    /// [`Error::Refused`] with the command.
    pub(crate) fn control<P: FromBytes + IntoBytes>(
        &self,
        object: Handle,
        command: u32,
        parameters: &mut P,
    ) -> Result<(), Error> {
        let mut control = self.question(object, command, size_of::<P>());
        self.with_parameters(resource_manager::CONTROL, &mut control, 16, Some(parameters))?;
        Status(control.status).check(resource_manager::CONTROL.name, command)
    }

    /// Asks a subdevice for facts of its graphics engine: fills in what `facts` name.
    ///
    /// # Errors
    /// [`Error::Refused`].
    pub fn graphics_facts(&self, subdevice: Handle, facts: &mut [GrInfo]) -> Result<(), Error> {
        let count = size_of_parameters(facts.len());
        let mut list = GrGetInfo { gr_info_list_size: count, ..Default::default() };
        let command = super::layout::control::GR_GET_INFO;
        self.facts(subdevice, command, list.as_mut_bytes(), facts)
    }

    /// The same for facts of its memory.
    ///
    /// # Errors
    /// [`Error::Refused`].
    pub fn memory_facts(&self, subdevice: Handle, facts: &mut [GrInfo]) -> Result<(), Error> {
        let count = size_of_parameters(facts.len());
        let mut list = FbGetInfo { fb_info_list_size: count, ..Default::default() };
        let command = super::layout::control::FB_GET_INFO;
        self.facts(subdevice, command, list.as_mut_bytes(), facts)
    }

    /// Asks with `list`, which has a pointer to `facts` at byte 8.
    fn facts(
        &self,
        subdevice: Handle,
        command: u32,
        list: &mut [u8],
        facts: &mut [GrInfo],
    ) -> Result<(), Error> {
        let mut control = self.question(subdevice, command, list.len());
        let mut parts = [
            Part { bytes: control.as_mut_bytes(), pointer: Some(16) },
            Part { bytes: list, pointer: Some(8) },
            Part { bytes: facts.as_mut_bytes(), pointer: None },
        ];
        self.call(resource_manager::CONTROL, &mut parts)?;
        Status(control.status).check(resource_manager::CONTROL.name, command)
    }

    /// Frees an object and what was made under it.
    ///
    /// # Errors
    /// [`Error::Refused`] with its number.
    pub fn free(&self, parent: Handle, object: Handle) -> Result<(), Error> {
        let mut free = Nvos00 {
            h_root: self.root.0,
            h_object_parent: parent.0,
            h_object_old: object.0,
            status: 0,
        };
        self.call(resource_manager::FREE, &mut [part(&mut free)])?;
        Status(free.status).check(resource_manager::FREE.name, object.0)
    }

    /// Makes a call of the resource manager.
    ///
    /// # Errors
    /// What the system says; what the driver says is in the argument.
    pub(crate) fn resource_manager<P: FromBytes + IntoBytes>(
        &self,
        call: Call,
        argument: &mut P,
    ) -> Result<(), Error> {
        self.call(call, &mut [part(argument)])
    }

    /// Makes a call of unified virtual memory.
    ///
    /// # Errors
    /// What the system says; what the driver says is in the argument.
    pub(crate) fn uvm<P: FromBytes + IntoBytes>(
        &self,
        call: Call,
        argument: &mut P,
    ) -> Result<(), Error> {
        // SAFETY: this crate alone makes calls, each with its structure, and of addresses gives those of its own mappings.
        unsafe { self.system.ioctl(&self.uvm, call, &mut [part(argument)]) }
    }

    fn question(&self, object: Handle, cmd: u32, size: usize) -> Nvos54 {
        let params_size = size_of_parameters(size);
        Nvos54 { h_client: self.root.0, h_object: object.0, cmd, params_size, ..Default::default() }
    }

    fn with_parameters<A: FromBytes + IntoBytes, P: FromBytes + IntoBytes>(
        &self,
        call: Call,
        argument: &mut A,
        pointer: usize,
        parameters: Option<&mut P>,
    ) -> Result<(), Error> {
        match parameters {
            None => self.call(call, &mut [part(argument)]),
            Some(parameters) => {
                let argument = Part { bytes: argument.as_mut_bytes(), pointer: Some(pointer) };
                self.call(call, &mut [argument, part(parameters)])
            }
        }
    }

    fn call(&self, call: Call, parts: &mut [Part<'_>]) -> Result<(), Error> {
        // SAFETY: as for `uvm`.
        unsafe { self.system.ioctl(&self.control, call, parts) }
    }
}

impl<S: System> Drop for Client<S> {
    /// Frees the root, and with it what nobody has freed. Closing the files does so, too: an error has nobody to be told.
    fn drop(&mut self) {
        if self.root != Handle(0) {
            let _ = self.free(Handle(0), self.root);
        }
    }
}

fn part<T: FromBytes + IntoBytes>(structure: &mut T) -> Part<'_> {
    Part { bytes: structure.as_mut_bytes(), pointer: None }
}

/// Structures and lists are far smaller than 4 GiB.
fn size_of_parameters(size: usize) -> u32 {
    u32::try_from(size).unwrap_or(u32::MAX)
}
