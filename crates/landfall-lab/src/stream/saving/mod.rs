//! Dump against log: what does it take to keep a state durable, by writing all of it now and then or
//! by logging its changes, and how much must change before the dump is cheaper?

mod plan;
mod result;

pub use plan::Plan;
pub use result::{
    BreakEven, Cost, DumpResult, DumpTrial, LogResult, LogTrial, Policy, Replay, SavingResults,
};
