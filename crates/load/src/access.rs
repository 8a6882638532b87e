use serde::{Deserialize, Serialize};

use crate::LoadError;

/// The largest block: a longer transfer does not fit one system call.
const BLOCK_MAX_BYTES: u32 = 1 << 30;
/// Most outstanding I/Os of a worker, half the capacity of an io_uring.
const QUEUE_DEPTH_MAX: u32 = 16_384;
/// System calls take offsets as signed numbers.
const OFFSET_MAX: u64 = i64::MAX as u64;

/// A block size and its weight in a mix.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BlockShare {
    pub bytes: u32,
    pub weight: f64,
}

/// Which part of a volume random accesses prefer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Skew {
    Uniform,
    /// Zipf with the given exponent; the ranks are scattered over the region.
    Zipf {
        theta: f64,
    },
    /// `access_share` of the accesses go to the first `space_share` of the region.
    Hot {
        access_share: f64,
        space_share: f64,
    },
}

/// The bytes of a volume an activity may touch: `[start_bytes, end_bytes)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Region {
    pub start_bytes: u64,
    pub end_bytes: u64,
}

/// Which I/Os are asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Access {
    pub blocks: Vec<BlockShare>,
    pub read_share: f64,
    /// Share of I/Os at a random place; the others continue where the stream's last I/O ended.
    pub random_share: f64,
    pub skew: Skew,
    pub region: Region,
    /// Random offsets are multiples of this from the start of the region; sequential I/Os follow each other.
    pub align_bytes: u64,
    /// Independent sequential streams, each in its own part of the region, taken in turn.
    pub streams: u32,
    /// Sequential I/Os start this far apart instead of back to back.
    pub stride_bytes: Option<u64>,
    /// Share of writes that repeat one and the same block.
    pub duplicate_share: f64,
}

/// Durability asked of writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sync {
    None,
    /// The file is opened with `O_DSYNC`.
    Dsync,
    Fdatasync,
    Fsync,
}

/// Rule by which an I/O of a trace begins again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pace {
    /// Its time since the trace began, whatever the device does.
    Timed,
    /// The number of I/Os that were outstanding when it was asked for: it begins once no more are.
    Outstanding,
    /// The end of the I/O that it follows, and the time that passed from there.
    Following,
}

/// How hard an activity asks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Load {
    /// Always `queue_depth` I/Os outstanding per worker.
    Closed { queue_depth: u32 },
    /// Always `outstanding` I/Os over all workers of the activity. Where they do not divide evenly, some workers have one
    /// more than others, and take turns: see [`Turns`](crate::Turns).
    Spread { outstanding: u32 },
    /// I/Os arrive at `rate` per second over all workers of the activity, whatever the device does;
    /// at most `queue_depth` are outstanding per worker, later ones wait with their clock running.
    Open { rate: f64, poisson: bool, queue_depth: u32 },
    /// Poisson arrivals of `rate` per second on average, as in `Open`, that come in waves: in the first `peak_share` of each
    /// `period_ns` their rate is `peak_factor` times the mean, and lower in the rest of it.
    Waves { rate: f64, peak_factor: f64, peak_share: f64, period_ns: u64, queue_depth: u32 },
    /// Every `interval_ns`, `bytes` are written, spread evenly over `spread_share` of the interval, as a checkpoint does.
    Bursts { interval_ns: u64, bytes: u64, spread_share: f64, queue_depth: u32 },
    /// The I/Os of a trace, which the worker's [`Feed`](crate::Feed) gives; at most `queue_depth` are outstanding per worker.
    Replay { pace: Pace, queue_depth: u32 },
}

impl Load {
    /// Most outstanding I/Os of one of `workers` workers.
    pub fn queue_depth(&self, workers: u32) -> u32 {
        match *self {
            Load::Spread { outstanding } => outstanding.div_ceil(workers),
            Load::Closed { queue_depth }
            | Load::Open { queue_depth, .. }
            | Load::Waves { queue_depth, .. }
            | Load::Bursts { queue_depth, .. }
            | Load::Replay { queue_depth, .. } => queue_depth,
        }
    }

    /// Whether the load replays a trace.
    pub fn is_replay(&self) -> bool {
        matches!(self, Load::Replay { .. })
    }

    /// Whether arrivals have intended times of their own.
    pub fn is_open(&self) -> bool {
        !matches!(self, Load::Closed { .. } | Load::Spread { .. } | Load::Replay { pace: Pace::Outstanding, .. })
    }
}

/// One role's access under one load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Activity {
    pub name: String,
    pub role: String,
    /// Indexes of the session's volumes.
    pub volumes: Vec<usize>,
    /// Workers per volume.
    pub workers: u32,
    pub access: Access,
    pub load: Load,
    /// Past the page cache.
    pub direct: bool,
    pub sync: Sync,
    /// With `Fdatasync` or `Fsync`: a flush follows every this many writes of a worker.
    pub sync_every: u32,
    /// Share of written bytes that are zeros.
    pub compressible_share: f64,
    /// Stop after this many bytes per worker (laying out a file); a flush ends it.
    pub limit_bytes: Option<u64>,
}

impl Access {
    /// The largest block of the mix.
    pub fn largest_block_bytes(&self) -> u32 {
        self.blocks.iter().map(|block| block.bytes).max().unwrap_or(0)
    }

    /// Mean block size of the mix.
    pub fn mean_block_bytes(&self) -> f64 {
        let weight: f64 = self.blocks.iter().map(|block| block.weight).sum();
        self.blocks.iter().map(|block| f64::from(block.bytes) * block.weight).sum::<f64>() / weight
    }

    /// Checks every field against the others.
    ///
    /// # Errors
    /// [`LoadError::InvalidValue`] names the first field that cannot be carried out.
    pub fn validate(&self, sector_bytes: u32) -> Result<(), LoadError> {
        share("read_share", self.read_share)?;
        share("random_share", self.random_share)?;
        share("duplicate_share", self.duplicate_share)?;
        if self.blocks.is_empty() {
            return Err(LoadError::value("block_bytes", "no block size given"));
        }
        for block in &self.blocks {
            if block.bytes == 0 || !block.bytes.is_multiple_of(sector_bytes) {
                let message = format!("{} is not a multiple of the sector of {sector_bytes} bytes", block.bytes);
                return Err(LoadError::value("block_bytes", message));
            }
            if block.bytes > BLOCK_MAX_BYTES {
                let message = format!("{} is more than {BLOCK_MAX_BYTES} bytes", block.bytes);
                return Err(LoadError::value("block_bytes", message));
            }
            if !block.weight.is_finite() || block.weight <= 0.0 {
                return Err(LoadError::value("block_bytes", format!("weight {} is not above 0", block.weight)));
            }
        }
        if self.align_bytes == 0 || !self.align_bytes.is_multiple_of(u64::from(sector_bytes)) {
            let message = format!("{} is not a multiple of the sector of {sector_bytes} bytes", self.align_bytes);
            return Err(LoadError::value("align_bytes", message));
        }
        if self.streams == 0 {
            return Err(LoadError::value("streams", "must be at least 1"));
        }
        let fits = |bytes: u64| bytes > 0 && bytes <= OFFSET_MAX && bytes.is_multiple_of(u64::from(sector_bytes));
        if let Some(stride_bytes) = self.stride_bytes.filter(|bytes| !fits(*bytes)) {
            let message = format!("{stride_bytes} is not a multiple of the sector of {sector_bytes} bytes");
            return Err(LoadError::value("stride_bytes", message));
        }
        self.validate_skew()?;
        self.validate_region(sector_bytes)
    }

    fn validate_skew(&self) -> Result<(), LoadError> {
        match self.skew {
            Skew::Uniform => Ok(()),
            Skew::Zipf { theta } if theta > 0.0 && theta.is_finite() => Ok(()),
            Skew::Zipf { theta } => Err(LoadError::value("skew", format!("zipf exponent {theta} is not above 0"))),
            Skew::Hot { access_share, space_share } => {
                share("skew", access_share)?;
                share("skew", space_share)?;
                if space_share == 0.0 {
                    return Err(LoadError::value("skew", "the hot part has no space"));
                }
                Ok(())
            }
        }
    }

    fn validate_region(&self, sector_bytes: u32) -> Result<(), LoadError> {
        let Region { start_bytes, end_bytes } = self.region;
        if !start_bytes.is_multiple_of(u64::from(sector_bytes)) {
            let message = format!("start {start_bytes} is not a multiple of the sector of {sector_bytes} bytes");
            return Err(LoadError::value("region", message));
        }
        if end_bytes > OFFSET_MAX {
            return Err(LoadError::value("region", format!("end {end_bytes} is beyond what an offset can be")));
        }
        let region_bytes = end_bytes.saturating_sub(start_bytes);
        if region_bytes < u64::from(self.largest_block_bytes()) {
            let message =
                format!("{region_bytes} bytes are smaller than one block of {} bytes", self.largest_block_bytes());
            return Err(LoadError::value("region", message));
        }
        Ok(())
    }
}

impl Load {
    fn validate(&self, workers: u32) -> Result<(), LoadError> {
        let depth = self.queue_depth(workers);
        if depth == 0 || depth > QUEUE_DEPTH_MAX {
            return Err(LoadError::value("queue_depth", format!("{depth} is outside 1 to {QUEUE_DEPTH_MAX}")));
        }
        match *self {
            Load::Spread { outstanding } if outstanding < workers => {
                let message = format!("{outstanding} are less than one for each of {workers} workers");
                Err(LoadError::value("outstanding", message))
            }
            Load::Closed { .. } | Load::Spread { .. } | Load::Replay { .. } => Ok(()),
            Load::Open { rate, .. } | Load::Waves { rate, .. } if !(rate > 0.0 && rate.is_finite()) => {
                Err(LoadError::value("rate", format!("{rate} is not above 0")))
            }
            Load::Open { .. } => Ok(()),
            Load::Waves { peak_factor, peak_share, period_ns, .. } => {
                share("peak_share", peak_share)?;
                if period_ns == 0 || peak_share == 0.0 || !(peak_factor >= 1.0 && peak_factor * peak_share <= 1.0) {
                    let message = "a wave needs a time, and its peak at most all I/Os";
                    return Err(LoadError::value("peak_factor", message));
                }
                Ok(())
            }
            Load::Bursts { interval_ns, bytes, spread_share, .. } => {
                if interval_ns == 0 || bytes == 0 {
                    return Err(LoadError::value("bursts", "interval and bytes must be above 0"));
                }
                share("bursts", spread_share)
            }
        }
    }
}

impl Activity {
    /// Checks every field against the others.
    ///
    /// # Errors
    /// [`LoadError::InvalidValue`] names the first field that cannot be carried out.
    pub fn validate(&self, sector_bytes: u32) -> Result<(), LoadError> {
        self.access.validate(sector_bytes)?;
        share("compressible_share", self.compressible_share)?;
        for (field, value) in [("workers", self.workers), ("sync_every", self.sync_every)] {
            if value == 0 {
                return Err(LoadError::value(field, "must be at least 1"));
            }
        }
        if self.volumes.is_empty() {
            return Err(LoadError::value("volumes", "no volume given"));
        }
        self.load.validate(self.workers_total())
    }

    /// Workers over all volumes.
    pub fn workers_total(&self) -> u32 {
        self.workers.saturating_mul(self.volumes.len() as u32)
    }
}

fn share(field: &'static str, value: f64) -> Result<(), LoadError> {
    if (0.0..=1.0).contains(&value) {
        Ok(())
    } else {
        Err(LoadError::value(field, format!("{value} is outside 0 to 1")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn activity() -> Activity {
        Activity {
            name: "data".into(),
            role: "data".into(),
            volumes: vec![0],
            workers: 1,
            access: Access {
                blocks: vec![BlockShare { bytes: 8192, weight: 1.0 }],
                read_share: 0.7,
                random_share: 1.0,
                skew: Skew::Uniform,
                region: Region { start_bytes: 0, end_bytes: 1 << 30 },
                align_bytes: 8192,
                streams: 1,
                stride_bytes: None,
                duplicate_share: 0.0,
            },
            load: Load::Closed { queue_depth: 1 },
            direct: true,
            sync: Sync::None,
            sync_every: 1,
            compressible_share: 0.0,
            limit_bytes: None,
        }
    }

    #[test]
    fn each_value_that_cannot_be_carried_out_is_named() {
        type Change = fn(&mut Activity);
        let cases: [(&str, Change); 25] = [
            ("read_share", |activity| activity.access.read_share = 1.3),
            ("random_share", |activity| activity.access.random_share = f64::NAN),
            ("duplicate_share", |activity| activity.access.duplicate_share = -0.1),
            ("compressible_share", |activity| activity.compressible_share = 2.0),
            ("block_bytes", |activity| activity.access.blocks.clear()),
            ("block_bytes", |activity| activity.access.blocks[0].bytes = 0),
            ("block_bytes", |activity| activity.access.blocks[0].bytes = 1000),
            ("block_bytes", |activity| activity.access.blocks[0].bytes = 1 << 31),
            ("block_bytes", |activity| activity.access.blocks[0].weight = f64::INFINITY),
            ("align_bytes", |activity| activity.access.align_bytes = 100),
            ("streams", |activity| activity.access.streams = 0),
            ("stride_bytes", |activity| activity.access.stride_bytes = Some(0)),
            ("stride_bytes", |activity| activity.access.stride_bytes = Some(1000)),
            ("stride_bytes", |activity| activity.access.stride_bytes = Some(u64::MAX - 511)),
            ("skew", |activity| activity.access.skew = Skew::Zipf { theta: 0.0 }),
            ("skew", |activity| activity.access.skew = Skew::Hot { access_share: 0.8, space_share: 0.0 }),
            ("region", |activity| activity.access.region.start_bytes = 100),
            ("region", |activity| activity.access.region.end_bytes = 4096),
            ("region", |activity| activity.access.region.end_bytes = u64::MAX),
            ("queue_depth", |activity| activity.load = Load::Closed { queue_depth: 0 }),
            ("outstanding", |activity| {
                (activity.workers, activity.load) = (3, Load::Spread { outstanding: 2 });
            }),
            ("rate", |activity| activity.load = Load::Open { rate: -1.0, poisson: false, queue_depth: 1 }),
            ("bursts", |activity| {
                activity.load = Load::Bursts { interval_ns: 0, bytes: 1, spread_share: 0.5, queue_depth: 1 };
            }),
            ("sync_every", |activity| activity.sync_every = 0),
            ("volumes", |activity| activity.volumes.clear()),
        ];
        activity().validate(512).unwrap();
        for (field, change) in cases {
            let mut asked = activity();
            change(&mut asked);
            let Err(LoadError::InvalidValue { field: named, .. }) = asked.validate(512) else {
                panic!("{field} is accepted: {asked:?}")
            };
            assert_eq!(named, field);
        }
    }
}
