//! Graphs: calls that are put together once, and launched as one.

mod build;
mod exec;
mod node;

pub use build::NvGraph;
pub use exec::NvGraphExec;
pub use node::NvGraphNode;
