//! Models of arrays of every structure, driven alike.

use std::ops::Range;

use assay_load::{Completion, Op, Request, Simulated};

use crate::{
    ArrayError, ArrayModel, ArrayPlan, CloudModel, CloudPlan, HostFlashModel, HostFlashPlan, HostReading, LogReading,
    MemberReading, timeline::Timed,
};

/// A model as sessions use it, besides time and I/O.
pub trait Modelled: Simulated {
    /// Size of a volume, where there is one.
    fn volume_bytes(&self, volume: usize) -> Option<u64>;

    /// Puts the data of an access into the caches, without time passing.
    fn warm(&mut self, op: Op, volume: u16, offset_bytes: u64, length_bytes: u32);

    /// Whether warming with such accesses changes nothing any more.
    fn is_warm(&self, reads: bool, writes: bool) -> bool;

    /// Fills caches that keep old writes with these regions of volumes.
    fn fill(&mut self, regions: &[(u16, Range<u64>)]);

    /// Readings of the members, or of the data nodes.
    fn readings(&self) -> Vec<MemberReading>;

    /// Readings of the hosts.
    fn host_readings(&self) -> Vec<HostReading>;

    /// How a log-structured pool stands.
    fn log_reading(&self) -> Option<LogReading>;
}

impl Modelled for ArrayModel {
    fn volume_bytes(&self, volume: usize) -> Option<u64> {
        self.volume_bytes(volume)
    }

    fn warm(&mut self, op: Op, volume: u16, offset_bytes: u64, length_bytes: u32) {
        self.warm(op, volume, offset_bytes, length_bytes);
    }

    fn is_warm(&self, reads: bool, writes: bool) -> bool {
        self.is_warm(reads, writes)
    }

    /// Nothing: a controller's cache keeps recent data, which warming draws.
    fn fill(&mut self, _regions: &[(u16, Range<u64>)]) {}

    fn readings(&self) -> Vec<MemberReading> {
        self.readings()
    }

    fn host_readings(&self) -> Vec<HostReading> {
        self.host_ports().into_iter().map(|ports| HostReading { ports, ..HostReading::default() }).collect()
    }

    fn log_reading(&self) -> Option<LogReading> {
        None
    }
}

impl Modelled for HostFlashModel {
    fn volume_bytes(&self, volume: usize) -> Option<u64> {
        self.volume_bytes(volume)
    }

    fn warm(&mut self, op: Op, volume: u16, offset_bytes: u64, length_bytes: u32) {
        self.warm(op, volume, offset_bytes, length_bytes);
    }

    fn is_warm(&self, _reads: bool, _writes: bool) -> bool {
        self.is_warm()
    }

    fn fill(&mut self, regions: &[(u16, Range<u64>)]) {
        self.fill(regions);
    }

    fn readings(&self) -> Vec<MemberReading> {
        self.readings()
    }

    fn host_readings(&self) -> Vec<HostReading> {
        self.host_readings()
    }

    fn log_reading(&self) -> Option<LogReading> {
        Some(self.log_reading())
    }
}

/// Volumes of a cloud keep no caches that anyone could warm.
impl Modelled for CloudModel {
    fn volume_bytes(&self, volume: usize) -> Option<u64> {
        self.volume_bytes(volume)
    }

    fn warm(&mut self, _op: Op, _volume: u16, _offset_bytes: u64, _length_bytes: u32) {}

    fn is_warm(&self, _reads: bool, _writes: bool) -> bool {
        true
    }

    fn fill(&mut self, _regions: &[(u16, Range<u64>)]) {}

    fn readings(&self) -> Vec<MemberReading> {
        self.readings()
    }

    fn host_readings(&self) -> Vec<HostReading> {
        Vec::new()
    }

    fn log_reading(&self) -> Option<LogReading> {
        None
    }
}

/// A model of any structure.
#[derive(Debug, Clone)]
pub enum Model {
    Group(Box<ArrayModel>),
    HostFlash(Box<HostFlashModel>),
    Cloud(Box<CloudModel>),
}

/// The plan of one.
#[derive(Debug, Clone)]
pub enum ModelPlan {
    Group(ArrayPlan),
    HostFlash(Box<HostFlashPlan>),
    Cloud(CloudPlan),
}

impl ModelPlan {
    pub fn seed(&self) -> u64 {
        match self {
            Self::Group(plan) => plan.seed,
            Self::HostFlash(plan) => plan.seed,
            Self::Cloud(plan) => plan.seed,
        }
    }

    /// Text of all parameters that decide the contents of caches after the same accesses: arrays with equal texts may
    /// share warm caches.
    pub fn warmth(&self) -> String {
        match self {
            Self::Group(plan) => plan.warmth(),
            Self::HostFlash(plan) => plan.warmth(),
            Self::Cloud(_) => String::new(),
        }
    }
}

impl Model {
    /// An idle array at time 0.
    ///
    /// # Errors
    /// A parameter is impossible, or the volumes do not fit.
    pub fn new(plan: &ModelPlan) -> Result<Self, ArrayError> {
        match plan {
            ModelPlan::Group(plan) => ArrayModel::new(plan).map(Self::from),
            ModelPlan::HostFlash(plan) => HostFlashModel::new(plan).map(Self::from),
            ModelPlan::Cloud(plan) => CloudModel::new(plan).map(Self::from),
        }
    }

    /// Takes over the caches of another array with the same [`ModelPlan::warmth`].
    pub fn take_caches(&mut self, warm: &Self) {
        match (self, warm) {
            (Self::Group(own), Self::Group(warm)) => own.take_caches(warm),
            (Self::HostFlash(own), Self::HostFlash(warm)) => own.take_caches(warm),
            (Self::Cloud(_), Self::Cloud(_)) => {}
            _ => unreachable!("arrays of one warmth have one structure"),
        }
    }

    /// Sets whether a write-anywhere layout rewrites in one piece the data that a sequential read found scattered.
    pub fn set_read_realloc(&mut self, on: bool) {
        if let Self::Group(model) = self {
            model.set_read_realloc(on);
        }
    }

    /// Makes now the time 0 of the next run, once no I/O of the run before is outstanding.
    pub(crate) fn begin_session(&mut self) {
        match self {
            Self::Group(model) => model.begin_session(),
            Self::HostFlash(model) => model.begin_session(),
            Self::Cloud(model) => model.begin_session(),
        }
    }

    fn any(&self) -> &dyn Modelled {
        match self {
            Self::Group(model) => &**model,
            Self::HostFlash(model) => &**model,
            Self::Cloud(model) => &**model,
        }
    }
}

impl From<ArrayModel> for Model {
    fn from(model: ArrayModel) -> Self {
        Self::Group(Box::new(model))
    }
}

impl From<HostFlashModel> for Model {
    fn from(model: HostFlashModel) -> Self {
        Self::HostFlash(Box::new(model))
    }
}

impl From<CloudModel> for Model {
    fn from(model: CloudModel) -> Self {
        Self::Cloud(Box::new(model))
    }
}

impl Simulated for Model {
    #[inline]
    fn submit(&mut self, at_ns: u64, request: &Request) {
        match self {
            Self::Group(model) => model.submit(at_ns, request),
            Self::HostFlash(model) => model.submit(at_ns, request),
            Self::Cloud(model) => model.submit(at_ns, request),
        }
    }

    #[inline]
    fn next_event_ns(&self) -> Option<u64> {
        match self {
            Self::Group(model) => model.next_event_ns(),
            Self::HostFlash(model) => model.next_event_ns(),
            Self::Cloud(model) => model.next_event_ns(),
        }
    }

    #[inline]
    fn advance(&mut self, to_ns: u64, completions: &mut Vec<Completion>) -> u64 {
        match self {
            Self::Group(model) => model.advance(to_ns, completions),
            Self::HostFlash(model) => model.advance(to_ns, completions),
            Self::Cloud(model) => model.advance(to_ns, completions),
        }
    }
}

impl Modelled for Model {
    fn volume_bytes(&self, volume: usize) -> Option<u64> {
        self.any().volume_bytes(volume)
    }

    fn warm(&mut self, op: Op, volume: u16, offset_bytes: u64, length_bytes: u32) {
        match self {
            Self::Group(model) => model.warm(op, volume, offset_bytes, length_bytes),
            Self::HostFlash(model) => model.warm(op, volume, offset_bytes, length_bytes),
            Self::Cloud(model) => model.warm(op, volume, offset_bytes, length_bytes),
        }
    }

    fn is_warm(&self, reads: bool, writes: bool) -> bool {
        self.any().is_warm(reads, writes)
    }

    fn fill(&mut self, regions: &[(u16, Range<u64>)]) {
        match self {
            Self::Group(_) | Self::Cloud(_) => {}
            Self::HostFlash(model) => model.fill(regions),
        }
    }

    fn readings(&self) -> Vec<MemberReading> {
        self.any().readings()
    }

    fn host_readings(&self) -> Vec<HostReading> {
        self.any().host_readings()
    }

    fn log_reading(&self) -> Option<LogReading> {
        self.any().log_reading()
    }
}
