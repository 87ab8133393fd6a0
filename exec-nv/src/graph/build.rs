//! Graphs as they are put together.

use core::ptr;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use cudarc::driver::sys::{CUgraph, CUgraphNode};
use exec_core::{LruAllocator, View};

use super::node::{self, NvGraphNode};
use crate::arguments::NvArgument as Argument;
use crate::config::attributes;
use crate::context::Context;
use crate::device::NvDevice;
use crate::error::Error;
use crate::launch::NvLaunch;
use crate::memory::NvAllocator;
use crate::pending::{Retains, Used};
use crate::program::NvProgram;
use crate::queue::NvQueue;

/// Calls that depend on each other, put together by hand or by capturing a queue. Nothing runs before the graph is made ready
/// ([`instantiate`](Self::instantiate)) and launched. Buffers and code that it uses stay as long as it is there;
/// between its launches the host may read and write the buffers.
///
/// ```no_run
/// # use exec_nv::{Argument, NvDevice, NvGraph, NvLaunch, NvProgram};
/// # use exec_core::{Device as _, Spec};
/// # fn launch(device: &NvDevice, kernel: &NvProgram) -> Result<(), Box<dyn std::error::Error>> {
/// let (from, to) = (device.buffer(4096, Spec::new())?, device.buffer(4096, Spec::new())?);
/// // what is put into the queue by the closure is not run, but written down
/// let graph = NvGraph::capture(device.queue(), |queue| {
///     queue.copy(&from, &to)?;
///     // SAFETY: the kernel takes a pointer to 4096 bytes, and is launched nowhere else.
///     unsafe { kernel.launch(queue, &[Argument::Buffer(&to)], &NvLaunch::new(4, 256)) }.map(drop)
/// })?;
/// let ready = graph.instantiate()?;
/// for _ in 0..1000 {
///     // SAFETY: nobody else uses the buffers.
///     unsafe { ready.launch(device.queue())? };
/// }
/// device.queue().synchronize()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct NvGraph {
    pub(super) template: Arc<Template>,
    /// The driver's, in the order of their numbers.
    pub(super) nodes: Vec<CUgraphNode>,
    pub(super) used: Vec<UsedBy>,
}

/// What nodes use: those of this number, or a whole capture.
pub(super) type UsedBy = (Option<usize>, Arc<Retains>);

/// The driver's graph, until this is dropped.
#[derive(Debug)]
pub(super) struct Template {
    pub(super) context: Arc<Context>,
    pub(super) handle: CUgraph,
    pub(super) generation: u64,
    /// No other graph has it.
    pub(super) id: u64,
}

// SAFETY: handles are good on every thread, and a graph is changed by one that has it alone.
unsafe impl Send for NvGraph {}
// SAFETY: as above.
unsafe impl Sync for NvGraph {}
// SAFETY: as above.
unsafe impl Send for Template {}
// SAFETY: as above.
unsafe impl Sync for Template {}

impl Template {
    fn new(context: &Arc<Context>, handle: CUgraph) -> Arc<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let (generation, id) = (context.generation(), NEXT.fetch_add(1, Ordering::Relaxed));
        Arc::new(Self { context: Arc::clone(context), handle, generation, id })
    }

    /// [`Error::Stale`] once the device was reset.
    pub(super) fn check(&self) -> Result<(), Error> {
        self.context.check(self.generation)
    }
}

impl Drop for Template {
    fn drop(&mut self) {
        // SAFETY: ours, and nobody has it any more.
        let destroy = |driver: &crate::Driver| unsafe { driver.cuGraphDestroy(self.handle) };
        let _ = self.context.release(self.generation, destroy);
    }
}

/// Ends a capture, whatever happened.
struct Capture<'q>(Option<&'q NvQueue>);

impl Capture<'_> {
    fn end(&mut self) -> Result<(Arc<Template>, Used), Error> {
        let queue = self.0.take().ok_or(Error::Capturing)?;
        let (graph, used) = queue.end_capture()?;
        Ok((Template::new(queue.stream().context(), graph), used))
    }
}

impl Drop for Capture<'_> {
    fn drop(&mut self) {
        if self.0.is_some() {
            let _ = self.end();
        }
    }
}

impl NvGraph {
    /// A graph without calls.
    ///
    /// # Errors
    /// What the driver says.
    pub fn new(device: &NvDevice) -> Result<Self, Error> {
        let (context, mut handle) = (&device.shared().context, ptr::null_mut());
        // SAFETY: the place is ours.
        context.run(|driver| unsafe { driver.cuGraphCreate(&raw mut handle, 0) })?;
        let template = Template::new(context, handle);
        Ok(Self { template, nodes: Vec::new(), used: Vec::new() })
    }

    /// What `calls` puts into the queue, as a graph: copies, launches that do not wait, other graphs. Nothing of it runs. Other queues that
    /// [wait for it](NvQueue::wait_for) meanwhile are captured as well, and it has to wait for them before the end.
    ///
    /// # Errors
    /// [`Error::Capturing`] if a queue is waited for by the host meanwhile; what `calls` or the driver says: of calls that cannot be
    /// captured, too, as taking memory, and of queues that were not waited for. The queues are then as before.
    pub fn capture(
        queue: &NvQueue,
        calls: impl FnOnce(&NvQueue) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        queue.begin_capture()?;
        let mut capture = Capture(Some(queue));
        calls(queue)?;
        let (template, used) = capture.end()?;
        let mut graph =
            Self { template, nodes: Vec::new(), used: vec![(None, Arc::new(used.retain()))] };
        graph.ask_nodes()?;
        Ok(graph)
    }

    /// Gets the nodes from the driver.
    fn ask_nodes(&mut self) -> Result<(), Error> {
        let (graph, mut count) = (self.template.handle, 0);
        self.template.context.run(|driver| {
            // SAFETY: asks for the number; then for so many, and there is room.
            unsafe {
                driver.cuGraphGetNodes(graph, ptr::null_mut(), &raw mut count)?;
                self.nodes.resize(count, ptr::null_mut());
                driver.cuGraphGetNodes(graph, self.nodes.as_mut_ptr(), &raw mut count)
            }
        })?;
        self.nodes.truncate(count);
        Ok(())
    }

    /// Its calls. In a graph that was captured they are in the order of the driver.
    pub fn nodes(&self) -> impl Iterator<Item = NvGraphNode> {
        let graph = self.template.id;
        (0..self.nodes.len()).map(move |index| NvGraphNode::new(graph, index))
    }

    /// The driver's nodes.
    fn handles(&self, nodes: &[NvGraphNode]) -> Result<Vec<CUgraphNode>, Error> {
        nodes.iter().map(|node| node.handle(self.template.id, &self.nodes)).collect()
    }

    /// Adds a node that `add` makes: it is given a place for it, and those in front of it.
    fn add(
        &mut self,
        after: &[NvGraphNode],
        used: Used,
        add: impl FnOnce(&crate::Driver, *mut CUgraphNode, &[CUgraphNode]) -> Result<(), Error>,
    ) -> Result<NvGraphNode, Error> {
        self.template.check()?;
        let (after, mut made) = (self.handles(after)?, ptr::null_mut());
        self.template.context.run(|driver| add(driver, &raw mut made, &after))?;
        let index = self.nodes.len();
        self.nodes.push(made);
        self.used.push((Some(index), Arc::new(used.retain())));
        Ok(NvGraphNode::new(self.template.id, index))
    }

    /// Adds a point that waits for others.
    ///
    /// # Errors
    /// [`Error::OtherGraph`] if one of `after` is not of this graph; what the driver says.
    pub fn add_join(&mut self, after: &[NvGraphNode]) -> Result<NvGraphNode, Error> {
        let graph = self.template.handle;
        self.add(after, Used::default(), |driver, place, after| {
            // SAFETY: the place is ours, the graph and its nodes are there.
            unsafe { driver.cuGraphAddEmptyNode(place, graph, after.as_ptr(), after.len()) }
        })
    }

    /// Adds a copy between views of one size on the graph's device, to run after others.
    ///
    /// # Errors
    /// [`Error::Core`] with what is wrong with the views; as [`add_join`](Self::add_join).
    pub fn add_copy(
        &mut self,
        after: &[NvGraphNode],
        from: &View<LruAllocator<NvAllocator>>,
        to: &View<LruAllocator<NvAllocator>>,
    ) -> Result<NvGraphNode, Error> {
        let (parameters, used) = node::copy(&self.template.context, from, to)?;
        if from.size() == 0 {
            // the driver has no copies of nothing
            return self.add_join(after);
        }
        let (graph, context) = (self.template.handle, self.template.context.handle());
        self.add(after, used, |driver, place, after| {
            let (first, count) = (after.as_ptr(), after.len());
            // SAFETY: as above; both views are kept as long as the graph, or what is made of it, is there.
            unsafe {
                driver.cuGraphAddMemcpyNode(
                    place,
                    graph,
                    first,
                    count,
                    &raw const parameters,
                    context,
                )
            }
        })
    }

    /// Adds what fills a view with one byte, to run after others.
    ///
    /// # Errors
    /// As [`add_copy`](Self::add_copy).
    pub fn add_fill(
        &mut self,
        after: &[NvGraphNode],
        view: &View<LruAllocator<NvAllocator>>,
        byte: u8,
    ) -> Result<NvGraphNode, Error> {
        let (parameters, used) = node::fill(&self.template.context, view, byte)?;
        if view.size() == 0 {
            return self.add_join(after);
        }
        let (graph, context) = (self.template.handle, self.template.context.handle());
        self.add(after, used, |driver, place, after| {
            let (first, count) = (after.as_ptr(), after.len());
            // SAFETY: as above.
            unsafe {
                driver.cuGraphAddMemsetNode(
                    place,
                    graph,
                    first,
                    count,
                    &raw const parameters,
                    context,
                )
            }
        })
    }

    /// Adds a launch, to run after others. It waits for nobody, whatever [`NvLaunch::wait`] says.
    ///
    /// # Errors
    /// [`Error::Launch`] and [`Error::Core`] as [`NvProgram::launch`], and of what cannot be in a graph; as [`add_join`](Self::add_join).
    ///
    /// # Safety
    /// As for [`NvProgram::launch`], whenever the graph runs.
    pub unsafe fn add_kernel(
        &mut self,
        after: &[NvGraphNode],
        program: &NvProgram,
        arguments: &[Argument<'_>],
        launch: &NvLaunch,
    ) -> Result<NvGraphNode, Error> {
        let graph = self.template.handle;
        let context = Arc::clone(&self.template.context);
        node::with_kernel(&context, program, arguments, launch, |parameters, used| {
            self.add(after, used, |driver, place, after| {
                let (first, count) = (after.as_ptr(), after.len());
                // SAFETY: as above; there is a pointer to each parameter, which the driver copies.
                unsafe {
                    driver.cuGraphAddKernelNode_v2(place, graph, first, count, parameters)?;
                    let set = attributes(launch).into_iter().try_for_each(|attribute| {
                        let value = &raw const attribute.value;
                        driver.cuGraphKernelNodeSetAttribute(*place, attribute.id as u32, value)
                    });
                    // what is not known here shall not run
                    set.inspect_err(|_| drop(driver.cuGraphDestroyNode(*place)))
                }
            })
        })
    }
}
