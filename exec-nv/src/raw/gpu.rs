//! A GPU brought up as far as its address space: what memory and channels are made in. Everything goes in order when it is dropped.

use core::fmt;
use std::sync::{Mutex, PoisonError};

use super::addresses::{Addresses, CONTEXTS, DEVICE};
use super::call::uvm;
use super::class::{self, Classes};
use super::client::{Client, Handle};
use super::error::Error;
use super::facts::Facts;
use super::layout::{control, objects, uvm as structures};
use super::mapping::map_object;
use super::status::{NOT_SUPPORTED, Status};
use super::system::System;

/// Bytes of the region with the doorbell.
const USERMODE_SIZE: u64 = 0x1_0000;
/// Faults are reported; pages are mapped by UVM.
const VASPACE_FLAGS: u32 = 1 << 6 | 1 << 3;
/// First address of the address space, and its size.
const VASPACE_RANGE: (u64, u64) = (0x1000, 0x1_ffff_fb00_0000);
/// How the doorbell is mapped: as the driver does by itself. Write-combined, a ring of it could stay in a buffer of the processor.
const AS_IT_IS: u32 = 0;

/// The steps, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// Files and version.
    Open,
    /// The card, its device and subdevice.
    Device,
    /// Which classes it offers.
    Classes,
    /// Facts: architecture, number of SMs.
    Facts,
    /// The region with the doorbell.
    Doorbell,
    /// Clocks up.
    Boost,
    /// Address space, known to UVM.
    AddressSpace,
    /// A channel for launches, its group, ring and compute object.
    Compute,
    /// A channel for copies.
    Copy,
    /// The first methods: objects bound, windows placed.
    SetUp,
}

/// Where it stopped, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// The step that failed.
    pub step: Step,
    /// What the driver answered.
    pub error: Error,
}

impl Stopped {
    pub(super) const fn at(step: Step) -> impl Fn(Error) -> Self {
        move |error| Self { step, error }
    }
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "step {:?}: {}", self.step, self.error)
    }
}

impl core::error::Error for Stopped {}

/// A GPU with an address space.
#[derive(Debug)]
pub struct Gpu<S: System> {
    facts: Facts,
    classes: Classes,
    node: Node<S>,
    doorbell: Doorbell<S>,
    space: Handle,
    uuid: [u8; 16],
    /// Free addresses that the GPU alone sees.
    own: Mutex<Addresses>,
    /// Free addresses for context buffers.
    contexts: Mutex<Addresses>,
    client: Client<S>,
}

/// A card that is open.
#[derive(Debug)]
struct Node<S: System> {
    path: String,
    device: Handle,
    subdevice: Handle,
    pci: [u32; 3],
    _file: S::File,
}

/// The region that channels are rung in.
#[derive(Debug)]
struct Doorbell<S: System> {
    // before its file
    view: S::Mapping,
    _file: S::File,
}

impl<S: System> Gpu<S> {
    /// Brings up GPU `index`, counted from 0.
    ///
    /// # Errors
    /// [`Stopped`]: the step and what the driver answered. All that was made is freed.
    pub fn open(system: S, index: usize) -> Result<Self, Stopped> {
        let client = Client::open(system).map_err(Stopped::at(Step::Open))?;
        let node = Node::open(&client, index).map_err(Stopped::at(Step::Device))?;
        let classes = node.classes(&client).map_err(Stopped::at(Step::Classes))?;
        let facts = Facts::ask(&client, node.subdevice).map_err(Stopped::at(Step::Facts))?;
        let doorbell = node.doorbell(&client, &classes).map_err(Stopped::at(Step::Doorbell))?;
        node.boost(&client).map_err(Stopped::at(Step::Boost))?;
        let made = node.address_space(&client).map_err(Stopped::at(Step::AddressSpace));
        let (space, uuid) = made?;
        let (own, contexts) = (Addresses::new(DEVICE), Addresses::new(CONTEXTS));
        let (own, contexts) = (Mutex::new(own), Mutex::new(contexts));
        Ok(Self { facts, classes, node, doorbell, space, uuid, own, contexts, client })
    }

    /// The driver's client.
    pub const fn client(&self) -> &Client<S> {
        &self.client
    }

    /// What it is.
    pub const fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The classes in use.
    pub const fn classes(&self) -> &Classes {
        &self.classes
    }

    /// Its identity.
    pub const fn uuid(&self) -> [u8; 16] {
        self.uuid
    }

    /// PCI domain, bus and slot.
    pub const fn pci(&self) -> [u32; 3] {
        self.node.pci
    }

    pub(super) const fn device(&self) -> Handle {
        self.node.device
    }

    pub(super) const fn subdevice(&self) -> Handle {
        self.node.subdevice
    }

    pub(super) const fn space(&self) -> Handle {
        self.space
    }

    pub(super) fn path(&self) -> &str {
        &self.node.path
    }

    pub(super) const fn doorbell(&self) -> &S::Mapping {
        &self.doorbell.view
    }

    pub(super) fn take_addresses(&self, size: u64, alignment: u64) -> Option<u64> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner).take(size, alignment)
    }

    pub(super) fn give_addresses(&self, start: u64, size: u64) {
        self.own.lock().unwrap_or_else(PoisonError::into_inner).give(start, size);
    }

    pub(super) fn take_context(&self, size: u64) -> Option<u64> {
        self.contexts.lock().unwrap_or_else(PoisonError::into_inner).take(size, size)
    }

    pub(super) fn give_context(&self, start: u64, size: u64) {
        self.contexts.lock().unwrap_or_else(PoisonError::into_inner).give(start, size);
    }

    /// Tells UVM that nothing of the GPU is used any more.
    fn unregister(&self) -> Result<(), Error> {
        for call in [uvm::UNREGISTER_GPU_VASPACE, uvm::UNREGISTER_GPU] {
            let mut gpu = structures::UnregisterGpu { gpu_uuid: self.uuid, rm_status: 0 };
            self.client.uvm(call, &mut gpu)?;
            Status(gpu.rm_status).of(call)?;
        }
        Ok(())
    }
}

impl<S: System> Drop for Gpu<S> {
    /// Memory and channels are gone: they keep the GPU.
    fn drop(&mut self) {
        // there is nobody to tell of an error, and the end of the client takes what is left
        let _ = self.unregister();
        let _ = self.client.free(self.node.device, self.space);
    }
}

impl<S: System> Node<S> {
    fn open(client: &Client<S>, index: usize) -> Result<Self, Error> {
        let cards = client.cards()?;
        let missing = Error::NoDevice { index, count: cards.len() };
        let card = cards.get(index).ok_or(missing)?;
        let path = format!("/dev/nvidia{}", card.minor_number);
        let file = client.open_tied(&path)?;
        let mut id = control::GpuGetIdInfoV2 { gpu_id: card.gpu_id, ..Default::default() };
        client.control(client.root(), control::GPU_GET_ID_INFO_V2, &mut id)?;
        let mut parameters = objects::Nv0080AllocParameters {
            device_id: id.device_instance,
            h_client_share: client.root().0,
            ..Default::default()
        };
        let device = client.alloc(client.root(), class::DEVICE, Some(&mut parameters))?;
        let mut parameters = objects::Nv2080AllocParameters::default();
        let subdevice = client.alloc(device, class::SUBDEVICE, Some(&mut parameters))?;
        let pci = [card.domain, card.bus.into(), card.slot.into()];
        Ok(Self { path, device, subdevice, pci, _file: file })
    }

    fn classes(&self, client: &Client<S>) -> Result<Classes, Error> {
        let choose =
            |count: u32, list: &[u32]| Classes::choose(list.get(..count as usize).unwrap_or(list));
        let command = control::GPU_GET_CLASSLIST_V2;
        if client.version().is_580() {
            let mut list = control::GpuGetClasslistV2With200::default();
            client.control(self.device, command, &mut list)?;
            choose(list.num_classes, &list.class_list)
        } else {
            let mut list = control::GpuGetClasslistV2With100::default();
            client.control(self.device, command, &mut list)?;
            choose(list.num_classes, &list.class_list)
        }
    }

    fn doorbell(&self, client: &Client<S>, classes: &Classes) -> Result<Doorbell<S>, Error> {
        let mut bar1 = objects::NvHopperUsermodeAParams { b_bar1_mapping: 1, b_priv: 0 };
        let parameters = classes.has_bar1_doorbell().then_some(&mut bar1);
        let handle = client.alloc(self.subdevice, classes.usermode, parameters)?;
        let file = client.open_tied(&self.path)?;
        map_object(client, (self.subdevice, handle), &file, USERMODE_SIZE, AS_IT_IS)?;
        let view = client.system().map(&file, None, USERMODE_SIZE)?;
        Ok(Doorbell { view, _file: file })
    }

    fn boost(&self, client: &Client<S>) -> Result<(), Error> {
        const BOOST_TO_MAX_FOR_CUDA: u32 = 2 | 1 << 4;
        let mut boost = control::PerfBoost { flags: BOOST_TO_MAX_FOR_CUDA, duration: u32::MAX };
        match client.control(self.subdevice, control::PERF_BOOST, &mut boost) {
            // Slower, not wrong.
            Err(Error::Refused { status: NOT_SUPPORTED, .. }) => Ok(()),
            other => other,
        }
    }

    fn address_space(&self, client: &Client<S>) -> Result<(Handle, [u8; 16]), Error> {
        let (va_base, va_size) = VASPACE_RANGE;
        let handle = if client.version().is_580() {
            let mut space = objects::NvVaspaceAllocation580 {
                flags: VASPACE_FLAGS,
                va_size,
                va_base,
                ..Default::default()
            };
            client.alloc(self.device, class::VASPACE, Some(&mut space))?
        } else {
            let mut space = objects::NvVaspaceAllocation570 {
                flags: VASPACE_FLAGS,
                va_size,
                va_base,
                ..Default::default()
            };
            client.alloc(self.device, class::VASPACE, Some(&mut space))?
        };
        const BINARY: u32 = 2;
        let mut gid = control::GpuGetGidInfo { flags: BINARY, length: 16, ..Default::default() };
        client.control(self.subdevice, control::GPU_GET_GID_INFO, &mut gid)?;
        let uuid = gid.data.first_chunk().copied().unwrap_or_default();

        let mut register =
            structures::RegisterGpu { gpu_uuid: uuid, rm_ctrl_fd: -1, ..Default::default() };
        client.uvm(uvm::REGISTER_GPU, &mut register)?;
        Status(register.rm_status).of(uvm::REGISTER_GPU)?;
        let mut register = structures::RegisterGpuVaspace {
            gpu_uuid: uuid,
            rm_ctrl_fd: client.control_descriptor(),
            h_client: client.root().0,
            h_va_space: handle.0,
            rm_status: 0,
        };
        client.uvm(uvm::REGISTER_GPU_VASPACE, &mut register)?;
        Status(register.rm_status).of(uvm::REGISTER_GPU_VASPACE)?;
        Ok((handle, uuid))
    }
}
