//! Why a launch cannot be.

use core::fmt;

/// Why a launch cannot be. Nothing was launched.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LaunchError {
    /// A grid or block dimension is 0 or too large.
    Dimension {
        /// `grid` or `block`.
        what: &'static str,
        /// What was asked for.
        found: [u32; 3],
        /// The most that the device has.
        limit: [u32; 3],
    },
    /// A launch in a graph that is put together by hand cannot be this. One that is captured can.
    NotInGraphs {
        /// What was asked for.
        what: &'static str,
    },
    /// A block has too many threads.
    Threads {
        /// Threads asked for.
        found: u64,
        /// The most that can be.
        limit: u64,
        /// What sets the limit: `the device`, `the kernel`.
        by: &'static str,
    },
    /// The threads of a block would take more registers than there are.
    Registers {
        /// Threads asked for.
        found: u64,
        /// The most that can be.
        limit: u64,
        /// Registers of a thread.
        registers: u32,
        /// Registers that a block may have.
        of_block: u32,
    },
    /// The kernel takes blocks of one form only.
    Block {
        /// What was asked for.
        found: [u32; 3],
        /// The form.
        expected: [u32; 3],
    },
    /// A block would take more shared memory than there is.
    Shared {
        /// Bytes that the kernel declares.
        declared: u64,
        /// Bytes that the launch adds.
        dynamic: u64,
        /// Bytes that a block may have.
        limit: u64,
    },
    /// The device has no clusters.
    NoClusters {
        /// Number of the device's architecture: there are clusters from sm_90 on.
        sm: u32,
        /// The cluster asked for.
        cluster: [u32; 3],
    },
    /// The kernel takes clusters of one form only, and the launch has another or none.
    Cluster {
        /// What was asked for.
        found: Option<[u32; 3]>,
        /// The form.
        expected: [u32; 3],
    },
    /// The kernel must be launched in clusters.
    ClusterNeeded {
        /// The most blocks that a cluster can have.
        limit: u64,
    },
    /// A cluster has more blocks than can be.
    ClusterSize {
        /// Blocks asked for.
        found: u64,
        /// The most that can be.
        limit: u64,
    },
    /// The grid cannot be divided into clusters.
    ClusterGrid {
        /// The grid.
        grid: [u32; 3],
        /// The cluster.
        cluster: [u32; 3],
    },
    /// The device has no cooperative launches.
    NoCooperation {
        /// Number of the device's architecture.
        sm: u32,
        /// Blocks that were to run at the same time.
        blocks: u64,
    },
    /// Not all blocks can run at the same time.
    Cooperation {
        /// Blocks asked for.
        found: u64,
        /// The most that can run.
        limit: u64,
    },
    /// The device is older than what is asked for.
    Architecture {
        /// What is asked for.
        what: &'static str,
        /// Number of the device's architecture.
        found: u32,
        /// Number of the first architecture that has it.
        needed: u32,
    },
    /// There are too many or too few arguments.
    ArgumentCount {
        /// Number of the kernel's parameters.
        expected: usize,
        /// Number of arguments.
        found: usize,
    },
    /// An argument has another size than the parameter.
    ArgumentSize {
        /// Its index.
        index: usize,
        /// Bytes of the parameter.
        expected: u32,
        /// Bytes of the argument.
        found: usize,
    },
}

/// `4x2x1`.
struct Form([u32; 3]);

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.0;
        write!(f, "{x}x{y}x{z}")
    }
}

impl fmt::Display for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotInGraphs { what } => write!(f, "{what} cannot be put into a graph by hand"),
            Self::Dimension { what, found, limit } => {
                write!(f, "a {what} of {}, where 1x1x1 to {} can be", Form(*found), Form(*limit))
            }
            Self::Threads { found, limit, by } => {
                write!(f, "{found} threads in a block, where {by} allows {limit}")
            }
            Self::Registers { found, limit, registers, of_block } => write!(
                f,
                "{found} threads of {registers} registers in a block, where the device's {of_block} registers allow {limit}"
            ),
            Self::Block { found, expected } => {
                write!(f, "a block of {}, where the kernel takes {}", Form(*found), Form(*expected))
            }
            Self::Shared { declared, dynamic, limit } => write!(
                f,
                "{declared} and {dynamic} bytes of shared memory for a block, where {limit} can be"
            ),
            Self::NoClusters { sm, cluster } => write!(
                f,
                "a cluster of {}, and the device has none: it is sm_{sm}, and they are from sm_90 on",
                Form(*cluster)
            ),
            Self::Cluster { found: Some(found), expected } => {
                write!(
                    f,
                    "a cluster of {}, where the kernel takes {}",
                    Form(*found),
                    Form(*expected)
                )
            }
            Self::Cluster { found: None, expected } => {
                write!(f, "no cluster, where the kernel takes {}", Form(*expected))
            }
            Self::ClusterNeeded { limit } => {
                write!(f, "no cluster, where the kernel takes one of 1 to {limit} blocks")
            }
            Self::ClusterSize { found, limit } => {
                write!(f, "a cluster of {found} blocks, where 1 to {limit} can be")
            }
            Self::ClusterGrid { grid, cluster } => {
                write!(f, "a grid of {} has no whole clusters of {}", Form(*grid), Form(*cluster))
            }
            Self::NoCooperation { sm, blocks } => write!(
                f,
                "a cooperative grid of {blocks} blocks, and this device of sm_{sm} has no cooperative launches"
            ),
            Self::Cooperation { found, limit } => {
                write!(f, "{found} blocks, where {limit} can run at the same time")
            }
            Self::Architecture { what, found, needed } => {
                write!(f, "{what} from sm_{needed} on, and the device is sm_{found}")
            }
            Self::ArgumentCount { expected, found } => {
                write!(f, "{found} arguments, expected {expected}")
            }
            Self::ArgumentSize { index, expected, found } => {
                write!(f, "argument {index} has {found} bytes, expected {expected}")
            }
        }
    }
}

impl core::error::Error for LaunchError {}
