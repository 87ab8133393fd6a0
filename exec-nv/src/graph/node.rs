//! Nodes of graphs, and their parameters as the driver wants them.

use core::ptr;
use std::sync::Arc;

use cudarc::driver::sys::{
    CUDA_KERNEL_NODE_PARAMS_v2_st as KernelNode, CUDA_MEMCPY3D_st as CopyNode,
    CUDA_MEMSET_NODE_PARAMS_st as FillNode, CUgraphNode, CUmemorytype,
};
use exec_core::{Error as CoreError, Hold, LruAllocator, View};

use crate::arguments::NvArgument as Argument;
use crate::context::Context;
use crate::error::Error;
use crate::launch::{LaunchError, NvLaunch};
use crate::memory::NvAllocator;
use crate::pending::Used;
use crate::program::NvProgram;
use crate::sides::Sides;

/// A call of an [`NvGraph`](crate::NvGraph).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NvGraphNode {
    graph: u64,
    index: usize,
}

impl NvGraphNode {
    pub(super) const fn new(graph: u64, index: usize) -> Self {
        Self { graph, index }
    }

    pub(super) const fn index(self) -> usize {
        self.index
    }

    /// The driver's node, if this is one of that graph.
    pub(super) fn handle(self, graph: u64, nodes: &[CUgraphNode]) -> Result<CUgraphNode, Error> {
        let found = nodes.get(self.index).filter(|_| self.graph == graph);
        found.copied().ok_or(Error::OtherGraph)
    }
}

/// A view that a node uses, which is on the graph's device.
fn hold(
    context: &Context,
    view: &View<LruAllocator<NvAllocator>>,
) -> Result<Hold<LruAllocator<NvAllocator>>, Error> {
    let hold = view.hold()?;
    context.expect(hold.device())?;
    Ok(hold)
}

fn bytes(size: u64) -> Result<usize, Error> {
    usize::try_from(size).map_err(|_| CoreError::OutOfMemory { size }.into())
}

/// `CU_DEVICE_ATTRIBUTE_MAX_PITCH` of every device: a row of more bytes is refused, if it is said how long it is.
const MOST_PITCH: usize = 0x7fff_ffff;

/// A copy from view to view, and what it uses.
pub(super) fn copy(
    context: &Context,
    from: &View<LruAllocator<NvAllocator>>,
    to: &View<LruAllocator<NvAllocator>>,
) -> Result<(CopyNode, Used), Error> {
    let Sides { from: source, to: target, size } = Sides::of(from, to)?;
    context.expect(source.device())?;
    context.expect(target.device())?;
    let device = CUmemorytype::CU_MEMORYTYPE_DEVICE;
    // of one row there need be none
    let pitch = if size <= MOST_PITCH { size } else { 0 };
    let parameters = CopyNode {
        srcXInBytes: 0,
        srcY: 0,
        srcZ: 0,
        srcLOD: 0,
        srcMemoryType: device,
        srcHost: ptr::null(),
        srcDevice: source.address(),
        srcArray: ptr::null_mut(),
        reserved0: ptr::null_mut(),
        srcPitch: pitch,
        srcHeight: 1,
        dstXInBytes: 0,
        dstY: 0,
        dstZ: 0,
        dstLOD: 0,
        dstMemoryType: device,
        dstHost: ptr::null_mut(),
        dstDevice: target.address(),
        dstArray: ptr::null_mut(),
        reserved1: ptr::null_mut(),
        dstPitch: pitch,
        dstHeight: 1,
        WidthInBytes: size,
        Height: 1,
        Depth: 1,
    };
    Ok((parameters, Used { buffers: vec![source, target], ..Used::default() }))
}

/// What fills a view, and what it uses.
pub(super) fn fill(
    context: &Context,
    view: &View<LruAllocator<NvAllocator>>,
    byte: u8,
) -> Result<(FillNode, Used), Error> {
    let (width, hold) = (bytes(view.size())?, hold(context, view)?);
    let dst = hold.address();
    let value = byte.into();
    let parameters = FillNode { dst, pitch: 0, value, elementSize: 1, width, height: 1 };
    Ok((parameters, Used { buffers: vec![hold], ..Used::default() }))
}

/// Gives `then` a launch, and what it uses. The parameters are there as long as it runs.
pub(super) fn with_kernel<T>(
    context: &Context,
    program: &NvProgram,
    arguments: &[Argument<'_>],
    launch: &NvLaunch,
    then: impl FnOnce(*const KernelNode, Used) -> Result<T, Error>,
) -> Result<T, Error> {
    context.expect(program.device().context.id())?;
    program.check(launch)?;
    if launch.attributes.programmatic {
        return Err(LaunchError::NotInGraphs { what: "a programmatic dependent launch" }.into());
    }
    let mut used = Used::default();
    used.code.push(Arc::clone(program.function()) as _);
    let mut block = program.lock_block();
    program.fill(&mut block, arguments, |hold| used.buffers.push(hold))?;
    let ([grid_x, grid_y, grid_z], [x, y, z]) = (launch.grid, launch.block);
    let parameters = KernelNode {
        func: program.function().handle()?,
        gridDimX: grid_x,
        gridDimY: grid_y,
        gridDimZ: grid_z,
        blockDimX: x,
        blockDimY: y,
        blockDimZ: z,
        sharedMemBytes: launch.dynamic_shared,
        kernelParams: block.pointers(),
        extra: ptr::null_mut(),
        kern: ptr::null_mut(),
        ctx: ptr::null_mut(),
    };
    then(&raw const parameters, used).map_err(|error| program.with_limits(error, launch))
}
