//! Memory that a GPU can use: taken, mapped on one side or both, given back when it is dropped.

use std::sync::Arc;

use super::addresses::{give_shared, take_shared};
use super::call::uvm;
use super::class;
use super::client::Handle;
use super::error::Error;
use super::gpu::Gpu;
use super::layout::{objects, uvm as structures};
use super::mapping::map_object;
use super::status::Status;
use super::system::System;

/// Where memory is, and who sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// On the GPU, which alone sees it.
    Device,
    /// On the GPU, in one piece, seen by this process too: writes are combined, reads are slow.
    Window,
    /// On the host, seen by both.
    Host,
    /// On the host, seen by both, in none of the processor's caches: for what one side waits for the other to write.
    HostUncached,
}

/// `NVOS32_ATTR_PHYSICALITY_CONTIGUOUS`: in one piece.
const CONTIGUOUS: u32 = 2 << 27;
/// `NVOS32_ATTR_PHYSICALITY_ALLOW_NONCONTIGUOUS`.
const IN_PIECES: u32 = 3 << 27;
/// `NVOS32_ATTR_PAGE_SIZE_HUGE`, and its size in the second word of attributes.
const HUGE: (u32, u32) = (3 << 23, 1 << 20);
/// `NVOS32_ATTR_LOCATION_PCI`: on the host.
const OF_HOST: u32 = 1 << 25;
/// `NVOS32_ATTR_COHERENCY_CACHED`.
const CACHED: u32 = 1 << 29;
/// `NVOS32_ATTR2_GPU_CACHEABLE_YES`, and no clearing by tables.
const CACHEABLE_WITHOUT_ZBC: u32 = 1 << 2 | 1;
/// `NVOS32_ATTR2_GPU_CACHEABLE_NO`.
const NOT_CACHEABLE: u32 = 2 << 2;
/// Ignore banks, force the alignment, a handle is given, no mapping is required.
const FLAGS: u32 = 0x1 | 0x100 | 0x4000 | 0x8000;
/// Stays where it is when the GPU is switched off and on.
const PERSISTENT: u32 = 0x1_0000;
/// `NVOS32_TYPE_NOTIFIER`.
const NOTIFIER: u32 = 13;
/// Mappings of this process: write-combined.
const WRITE_COMBINED: u32 = 2 << 23;
/// Bytes of a page.
const PAGE: u64 = 0x1000;
/// Bytes of a large one, and from how many on they are used.
const HUGE_PAGE: (u64, u64) = (2 << 20, 8 << 20);
/// `EEXIST`: something of this process is at the address.
const TAKEN: i32 = 17;
/// How many places are tried.
const TRIES: usize = 64;

/// Memory of a GPU or for it, at an address that the GPU knows.
#[derive(Debug)]
pub struct Memory<S: System> {
    // the mapping goes before its file, and both before the memory
    view: Option<View<S>>,
    held: Held<S>,
}

/// Memory as this process sees it, and the file that the mapping is of.
type View<S> = (<S as System>::Mapping, <S as System>::File);

/// What has to be given back, as far as it was got.
#[derive(Debug)]
struct Held<S: System> {
    gpu: Arc<Gpu<S>>,
    place: Place,
    address: u64,
    size: u64,
    handle: Option<Handle>,
    is_range: bool,
}

impl<S: System> Memory<S> {
    /// `size` bytes, rounded up to pages.
    ///
    /// # Errors
    /// [`Error::NoAddresses`], what driver and system say. Nothing is kept then.
    pub fn new(gpu: &Arc<Gpu<S>>, size: u64, place: Place) -> Result<Self, Error> {
        let (page, wanted) = match (place, HUGE_PAGE) {
            (Place::Device, (huge, from)) if size >= from => (huge, size),
            _ => (PAGE, size),
        };
        let size = wanted
            .max(1)
            .checked_next_multiple_of(page)
            .ok_or(Error::NoAddresses { size: wanted })?;
        let mut refused = Vec::new();
        // what is taken by others stays taken until a place is found: the next try is elsewhere
        for _ in 0..TRIES {
            match Self::at_new_place(gpu, size, page, place) {
                Err((Error::Map { errno: TAKEN, .. }, held)) => refused.push(held),
                Err((error, _)) => return Err(error),
                Ok(memory) => return Ok(memory),
            }
        }
        Err(Error::NoAddresses { size })
    }

    fn at_new_place(
        gpu: &Arc<Gpu<S>>,
        size: u64,
        page: u64,
        place: Place,
    ) -> Result<Self, (Error, Option<Held<S>>)> {
        let address = match place {
            Place::Device => gpu.take_addresses(size, page),
            _ => take_shared(size, page),
        };
        let address = address.ok_or((Error::NoAddresses { size }, None))?;
        let gpu = Arc::clone(gpu);
        let mut held = Held { gpu, place, address, size, handle: None, is_range: false };
        match held.fill(page) {
            Ok(view) => Ok(Self { view, held }),
            Err(error) => Err((error, Some(held))),
        }
    }

    /// Where it is, for the GPU; and for this process, if it sees it.
    #[must_use]
    pub const fn address(&self) -> u64 {
        self.held.address
    }

    /// Bytes, as many as there are.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.held.size
    }

    /// Where it is, and who sees it.
    #[must_use]
    pub const fn place(&self) -> Place {
        self.held.place
    }

    /// Its object.
    pub(super) fn handle(&self) -> Handle {
        self.held.handle.unwrap_or(Handle(0))
    }

    /// As this process sees it.
    ///
    /// # Errors
    /// [`Error::NotSeen`] for memory that the GPU alone sees.
    pub fn view(&self) -> Result<&S::Mapping, Error> {
        self.view.as_ref().map(|(view, _)| view).ok_or(Error::NotSeen)
    }
}

impl<S: System> Held<S> {
    /// Gets memory, for the GPU and, where wanted, for this process.
    fn fill(&mut self, page: u64) -> Result<Option<View<S>>, Error> {
        let handle = self.allocate(page)?;
        let gpu = Arc::clone(&self.gpu);
        let client = gpu.client();
        let mut range = structures::CreateExternalRange {
            base: self.address,
            length: self.size,
            ..Default::default()
        };
        client.uvm(uvm::CREATE_EXTERNAL_RANGE, &mut range)?;
        Status(range.rm_status).of(uvm::CREATE_EXTERNAL_RANGE)?;
        self.is_range = true;

        let mut map = Box::new(structures::MapExternalAllocation {
            base: self.address,
            length: self.size,
            gpu_attributes_count: 1,
            rm_ctrl_fd: client.control_descriptor(),
            h_client: client.root().0,
            h_memory: handle.0,
            ..Default::default()
        });
        if let Some(first) = map.per_gpu_attributes.first_mut() {
            first.gpu_uuid = gpu.uuid();
            first.gpu_mapping_type = 1;
        }
        client.uvm(uvm::MAP_EXTERNAL_ALLOCATION, &mut *map)?;
        Status(map.rm_status).of(uvm::MAP_EXTERNAL_ALLOCATION)?;
        let (file, flags) = match self.place {
            Place::Device => return Ok(None),
            Place::Window => (client.open_tied(gpu.path())?, WRITE_COMBINED),
            Place::Host | Place::HostUncached => (client.open_control()?, 0),
        };
        map_object(client, (gpu.device(), handle), &file, self.size, flags)?;
        let mapping = client.system().map(&file, Some(self.address), self.size)?;
        Ok(Some((mapping, file)))
    }

    fn allocate(&mut self, page: u64) -> Result<Handle, Error> {
        let client = self.gpu.client();
        let of_gpu = |attr, attr2| (class::MEMORY_LOCAL_USER, 0, attr, attr2, FLAGS | PERSISTENT);
        let of_host = |coherency| {
            (class::MEMORY_SYSTEM, NOTIFIER, OF_HOST | IN_PIECES | coherency, NOT_CACHEABLE, FLAGS)
        };
        let (class, kind, attr, attr2, flags) = match self.place {
            Place::Device if page > PAGE => {
                of_gpu(IN_PIECES | HUGE.0, CACHEABLE_WITHOUT_ZBC | HUGE.1)
            }
            Place::Device => of_gpu(IN_PIECES, CACHEABLE_WITHOUT_ZBC),
            Place::Window => of_gpu(CONTIGUOUS, CACHEABLE_WITHOUT_ZBC),
            Place::Host => of_host(CACHED),
            Place::HostUncached => of_host(0),
        };
        let mut parameters = objects::NvMemoryAllocationParams {
            owner: client.root().0,
            kind,
            flags,
            attr,
            attr2,
            format: 6,
            size: self.size,
            alignment: page,
            limit: self.size.saturating_sub(1),
            ..Default::default()
        };
        let handle = client.alloc(self.gpu.device(), class, Some(&mut parameters))?;
        self.handle = Some(handle);
        Ok(handle)
    }

    /// Gives back what was got, the last first. What fails is left to the end of the client, which frees all.
    fn give_back(&self) -> Result<(), Error> {
        let client = self.gpu.client();
        let unmapped =
            if self.is_range { free_range(client, self.address, self.size) } else { Ok(()) };
        let freed = match self.handle {
            Some(handle) => client.free(self.gpu.device(), handle),
            None => Ok(()),
        };
        unmapped.and(freed)
    }
}

fn free_range<S: System>(
    client: &super::client::Client<S>,
    base: u64,
    length: u64,
) -> Result<(), Error> {
    let status = if client.version().is_595() {
        let mut free = structures::Free595 { base, ..Default::default() };
        client.uvm(uvm::FREE, &mut free)?;
        free.rm_status
    } else {
        let mut free = structures::Free590 { base, length, ..Default::default() };
        client.uvm(uvm::FREE, &mut free)?;
        free.rm_status
    };
    Status(status).of(uvm::FREE)
}

impl<S: System> Drop for Held<S> {
    fn drop(&mut self) {
        // an address that something may still be mapped at is not given out again
        if self.give_back().is_ok() {
            match self.place {
                Place::Device => self.gpu.give_addresses(self.address, self.size),
                _ => give_shared(self.address, self.size),
            }
        }
    }
}
