//! A GPU brought up to a scheduled channel, step by step. What comes behind it, pushing work, needs a GPU to be written.

use super::call::{resource_manager, uvm};
use super::class::{self, Classes};
use super::client::{Client, Handle};
use super::error::Error;
use super::layout::control::{self, gr_info};
use super::layout::{objects, resource_manager as rm, uvm as structures};
use super::local_memory::Shape;
use super::status::{NOT_SUPPORTED, Status};
use super::system::{Mapping, System};

/// Entries of the ring.
const RING_ENTRIES: u32 = 0x1_0000;
/// Bytes of the ring's memory: entries, control page, and room.
const RING_SIZE: u64 = 3 << 20;
/// Where the control page is in it.
const CONTROL_AT: u64 = RING_ENTRIES as u64 * 8;
/// Where memory that this process sees too begins, at the same address for both.
const SHARED_ADDRESSES: u64 = 0x10_0000_0000;
/// Where the driver maps the channel's context buffers: 64 MiB that nothing else uses.
const CONTEXT_ADDRESSES: (u64, u64) = ((1 << 37) - (64 << 20), 64 << 20);
/// Bytes of the region with the doorbell.
const USERMODE_SIZE: u64 = 0x1_0000;
/// `NV2080_ENGINE_TYPE_GRAPHICS`.
const GRAPHICS: u32 = 1;
/// Faults are reported; pages are mapped by UVM.
const VASPACE_FLAGS: u32 = 1 << 6 | 1 << 3;
/// First address of the address space, and its size.
const VASPACE_RANGE: (u64, u64) = (0x1000, 0x1_ffff_fb00_0000);
/// How memory of the GPU is mapped: write-combined.
const WRITE_COMBINED: u32 = 2 << 23;
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
    /// Memory of the GPU, mapped on both sides.
    Memory,
    /// A channel, its group and its compute object.
    Channel,
    /// What rings the doorbell, context buffers, schedule.
    Schedule,
}

/// Where it stopped, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// The step that failed.
    pub step: Step,
    /// What the driver answered.
    pub error: Error,
}

impl core::fmt::Display for Stopped {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "step {:?}: {}", self.step, self.error)
    }
}

impl core::error::Error for Stopped {}

/// A GPU with a scheduled channel. Everything is freed when it is dropped.
#[derive(Debug)]
pub struct RawDevice<S: System> {
    /// The channel's ring and control page.
    pub ring: Memory<S>,
    /// The region with the doorbell.
    pub doorbell: Memory<S>,
    /// What rings it.
    pub token: u32,
    /// The classes in use.
    pub classes: Classes,
    /// Architecture: 90 for sm_90.
    pub sm: u32,
    /// How many of what.
    pub shape: Shape,
    /// Identity of the GPU.
    pub uuid: [u8; 16],
    _card: S::File,
    client: Client<S>,
}

/// Memory that the GPU and this process see at the same address.
#[derive(Debug)]
pub struct Memory<S: System> {
    /// Its object.
    pub handle: Handle,
    /// As this process sees it.
    pub mapping: S::Mapping,
    /// The file that the mapping is of; a file serves one mapping.
    _file: S::File,
}

impl<S: System> RawDevice<S> {
    /// Brings up GPU `index`, counted from 0.
    ///
    /// # Errors
    /// [`Stopped`]: the step and what the driver answered. All that was made is freed.
    pub fn open(system: S, index: usize) -> Result<Self, Stopped> {
        let at = |step| move |error| Stopped { step, error };
        let client = Client::open(system).map_err(at(Step::Open))?;
        let node = Node::open(&client, index).map_err(at(Step::Device))?;
        let classes = node.classes(&client).map_err(at(Step::Classes))?;
        let (sm, shape) = node.facts(&client).map_err(at(Step::Facts))?;
        let doorbell = node.doorbell(&client, &classes).map_err(at(Step::Doorbell))?;
        node.boost(&client).map_err(at(Step::Boost))?;
        let space = node.address_space(&client).map_err(at(Step::AddressSpace))?;
        let ring =
            node.memory(&client, SHARED_ADDRESSES, RING_SIZE, &space).map_err(at(Step::Memory))?;
        let channel = node.channel(&client, &classes, &space, &ring).map_err(at(Step::Channel))?;
        let token = channel.schedule(&client, &space).map_err(at(Step::Schedule))?;
        let (uuid, _card) = (space.uuid, node.file);
        Ok(Self { ring, doorbell, token, classes, sm, shape, uuid, _card, client })
    }

    /// The driver's client.
    pub const fn client(&self) -> &Client<S> {
        &self.client
    }
}

/// A card that is open.
struct Node<F> {
    file: F,
    path: String,
    device: Handle,
    subdevice: Handle,
}

struct AddressSpace {
    handle: Handle,
    uuid: [u8; 16],
}

struct Channel {
    group: Handle,
    channel: Handle,
}

impl<F> Node<F> {
    fn open<S: System<File = F>>(client: &Client<S>, index: usize) -> Result<Self, Error> {
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
        Ok(Self { file, path, device, subdevice })
    }

    fn classes<S: System<File = F>>(&self, client: &Client<S>) -> Result<Classes, Error> {
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

    fn facts<S: System<File = F>>(&self, client: &Client<S>) -> Result<(u32, Shape), Error> {
        let asked = [
            gr_info::SM_VERSION,
            gr_info::MAX_WARPS_PER_SM,
            gr_info::NUM_GPCS,
            gr_info::NUM_TPC_PER_GPC,
            gr_info::NUM_SM_PER_TPC,
        ];
        let mut facts = asked.map(|index| control::GrInfo { index, data: 0 });
        client.graphics_facts(self.subdevice, &mut facts)?;
        let [version, warps_per_sm, gpcs, tpcs_per_gpc, sms_per_tpc] = facts.map(|fact| fact.data);
        let sm = (version >> 8) * 10 + (version & 0xf);
        Ok((sm, Shape { gpcs, tpcs_per_gpc, sms_per_tpc, warps_per_sm }))
    }

    fn doorbell<S: System<File = F>>(
        &self,
        client: &Client<S>,
        classes: &Classes,
    ) -> Result<Memory<S>, Error> {
        let mut bar1 = objects::NvHopperUsermodeAParams { b_bar1_mapping: 1, b_priv: 0 };
        let parameters = classes.has_bar1_doorbell().then_some(&mut bar1);
        let handle = client.alloc(self.subdevice, classes.usermode, parameters)?;
        self.map(client, self.subdevice, handle, None, USERMODE_SIZE, AS_IT_IS)
    }

    fn boost<S: System<File = F>>(&self, client: &Client<S>) -> Result<(), Error> {
        const BOOST_TO_MAX_FOR_CUDA: u32 = 2 | 1 << 4;
        let mut boost = control::PerfBoost { flags: BOOST_TO_MAX_FOR_CUDA, duration: u32::MAX };
        match client.control(self.subdevice, control::PERF_BOOST, &mut boost) {
            // Slower, not wrong.
            Err(Error::Refused { status: NOT_SUPPORTED, .. }) => Ok(()),
            other => other,
        }
    }

    fn address_space<S: System<File = F>>(
        &self,
        client: &Client<S>,
    ) -> Result<AddressSpace, Error> {
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
        Status(register.rm_status).check(uvm::REGISTER_GPU.name, uvm::REGISTER_GPU.number)?;
        let mut register = structures::RegisterGpuVaspace {
            gpu_uuid: uuid,
            rm_ctrl_fd: client.control_descriptor(),
            h_client: client.root().0,
            h_va_space: handle.0,
            rm_status: 0,
        };
        client.uvm(uvm::REGISTER_GPU_VASPACE, &mut register)?;
        let call = uvm::REGISTER_GPU_VASPACE;
        Status(register.rm_status).check(call.name, call.number)?;
        Ok(AddressSpace { handle, uuid })
    }

    /// Contiguous memory of the GPU at `address`, seen by this process too.
    fn memory<S: System<File = F>>(
        &self,
        client: &Client<S>,
        address: u64,
        size: u64,
        space: &AddressSpace,
    ) -> Result<Memory<S>, Error> {
        const CONTIGUOUS: u32 = 2 << 27;
        const CACHEABLE_WITHOUT_ZBC: u32 = 1 << 2 | 1;
        const FLAGS: u32 = 0x1 | 0x100 | 0x4000 | 0x8000 | 0x1_0000;
        let mut parameters = objects::NvMemoryAllocationParams {
            owner: client.root().0,
            flags: FLAGS,
            attr: CONTIGUOUS,
            attr2: CACHEABLE_WITHOUT_ZBC,
            format: 6,
            size,
            alignment: 0x1000,
            limit: size.saturating_sub(1),
            ..Default::default()
        };
        let handle = client.alloc(self.device, class::MEMORY_LOCAL_USER, Some(&mut parameters))?;

        let mut range =
            structures::CreateExternalRange { base: address, length: size, ..Default::default() };
        client.uvm(uvm::CREATE_EXTERNAL_RANGE, &mut range)?;
        let call = uvm::CREATE_EXTERNAL_RANGE;
        Status(range.rm_status).check(call.name, call.number)?;

        let mut map = structures::MapExternalAllocation {
            base: address,
            length: size,
            gpu_attributes_count: 1,
            rm_ctrl_fd: client.control_descriptor(),
            h_client: client.root().0,
            h_memory: handle.0,
            ..Default::default()
        };
        if let Some(first) = map.per_gpu_attributes.first_mut() {
            first.gpu_uuid = space.uuid;
            first.gpu_mapping_type = 1;
        }
        client.uvm(uvm::MAP_EXTERNAL_ALLOCATION, &mut map)?;
        let call = uvm::MAP_EXTERNAL_ALLOCATION;
        Status(map.rm_status).check(call.name, call.number)?;
        self.map(client, self.device, handle, Some(address), size, WRITE_COMBINED)
    }

    /// Maps an object into this process: through a file of its own.
    fn map<S: System<File = F>>(
        &self,
        client: &Client<S>,
        device: Handle,
        handle: Handle,
        address: Option<u64>,
        size: u64,
        flags: u32,
    ) -> Result<Memory<S>, Error> {
        let file = client.open_tied(&self.path)?;
        let mut map = rm::Nvos33WithFd {
            h_client: client.root().0,
            h_device: device.0,
            h_memory: handle.0,
            length: size,
            flags,
            fd: client.system().descriptor(&file),
            ..Default::default()
        };
        client.resource_manager(resource_manager::MAP_MEMORY, &mut map)?;
        Status(map.status).check(resource_manager::MAP_MEMORY.name, handle.0)?;
        let mapping = client.system().map(&file, address, size)?;
        Ok(Memory { handle, mapping, _file: file })
    }

    fn channel<S: System<File = F>>(
        &self,
        client: &Client<S>,
        classes: &Classes,
        space: &AddressSpace,
        ring: &Memory<S>,
    ) -> Result<Channel, Error> {
        let mut group =
            objects::NvChannelGroupAllocation { engine_type: GRAPHICS, ..Default::default() };
        let group = client.alloc(self.device, class::CHANNEL_GROUP, Some(&mut group))?;
        let mut share =
            objects::NvCtxshareAllocation { h_va_space: space.handle.0, flags: 1, subctx_id: 0 };
        let share = client.alloc(group, class::CONTEXT_SHARE, Some(&mut share))?;
        let mut channel = objects::NvChannelAllocParams {
            h_object_buffer: ring.handle.0,
            gp_fifo_offset: ring.mapping.address(),
            gp_fifo_entries: RING_ENTRIES,
            h_context_share: share.0,
            ..Default::default()
        };
        if let (Some(memory), Some(offset)) =
            (channel.h_userd_memory.first_mut(), channel.userd_offset.first_mut())
        {
            (*memory, *offset) = (ring.handle.0, CONTROL_AT);
        }
        let channel = client.alloc(group, classes.channel, Some(&mut channel))?;
        client.alloc(channel, classes.compute, None::<&mut objects::Nv2080AllocParameters>)?;
        Ok(Channel { group, channel })
    }
}

impl Channel {
    /// Gives the channel its context buffers and lets it run; gives what rings its doorbell.
    fn schedule<S: System>(&self, client: &Client<S>, space: &AddressSpace) -> Result<u32, Error> {
        let mut token = control::GpfifoGetWorkSubmitToken::default();
        client.control(self.channel, control::GPFIFO_GET_WORK_SUBMIT_TOKEN, &mut token)?;
        let (base, length) = CONTEXT_ADDRESSES;
        let mut register = structures::RegisterChannel {
            gpu_uuid: space.uuid,
            rm_ctrl_fd: client.control_descriptor(),
            h_client: client.root().0,
            h_channel: self.channel.0,
            base,
            length,
            ..Default::default()
        };
        client.uvm(uvm::REGISTER_CHANNEL, &mut register)?;
        let call = uvm::REGISTER_CHANNEL;
        Status(register.rm_status).check(call.name, call.number)?;
        if client.version().is_580() {
            let mut schedule = control::GpfifoSchedule580 { b_enable: 1, ..Default::default() };
            client.control(self.group, control::GPFIFO_SCHEDULE, &mut schedule)?;
        } else {
            let mut schedule = control::GpfifoSchedule570 { b_enable: 1, ..Default::default() };
            client.control(self.group, control::GPFIFO_SCHEDULE, &mut schedule)?;
        }
        Ok(token.work_submit_token)
    }
}
