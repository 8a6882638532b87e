//! I/Os under way.

use assay_load::{Op, Request, Watch, tasks::TaskId};

use crate::{VerifyPlan, history::History, slots::Slots, stamp::PageId, user::User};

/// Use of a completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Pages are verified and unlatched.
    Verify,
    /// Pages are unlatched.
    Write,
    /// The task that asked looks at it; latches stay.
    Raw,
}

/// An I/O under way.
#[derive(Debug, Clone, Copy)]
pub struct InFlight {
    pub op: Op,
    pub id: PageId,
    pub pages: u32,
    pub first_frame: u32,
    pub user: User,
    pub purpose: Purpose,
    pub task: TaskId,
    pub submitted_ns: u64,
    pub history: u64,
    pub reported_long: bool,
}

/// End of a raw I/O: bytes moved or a negative `errno`, and the buffer of a page read.
#[derive(Debug, Clone)]
pub(crate) struct RawEnd {
    pub result: i32,
    pub image: Box<[u8]>,
}

/// I/Os of the run: their places, those to be submitted, those under way, and the history of all.
pub(crate) struct Ios {
    pub slots: Slots,
    /// I/Os under way by tag.
    pub in_flight: Vec<Option<InFlight>>,
    pub to_submit: Vec<Request>,
    /// I/Os under way of each task.
    pub outstanding_of: Vec<u32>,
    /// Ends of raw I/Os by the task that asked for them.
    pub mailbox: Vec<Option<RawEnd>>,
    pub history: History,
    /// I/Os that failed since the last success.
    pub failures_in_a_row: u32,
    /// Flushes issued so far.
    pub flushes: u32,
    pub watch: Watch,
}

impl Ios {
    pub(crate) fn new(plan: &VerifyPlan) -> Self {
        let slots = Slots::new(plan);
        let depth = slots.depth() as usize;
        Self {
            slots,
            in_flight: vec![None; depth],
            to_submit: Vec::with_capacity(depth),
            outstanding_of: Vec::new(),
            mailbox: Vec::new(),
            history: History::new(),
            failures_in_a_row: 0,
            flushes: 0,
            watch: Watch::default(),
        }
    }

    /// Time the storage has had an I/O. Time before the end of a standstill of this process does not count.
    pub(crate) fn age_ns(&self, io: &InFlight, now_ns: u64) -> u64 {
        now_ns.saturating_sub(io.submitted_ns.max(self.watch.until_ns(now_ns)))
    }

    pub(crate) fn oldest_ns(&self, now_ns: u64) -> Option<u64> {
        self.in_flight.iter().flatten().map(|io| self.age_ns(io, now_ns)).max()
    }
}
