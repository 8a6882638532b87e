use assay_load::DataQueue;
use serde::{Deserialize, Serialize};

use crate::{BufferPool, DeviceError, SessionClock, ThreadQueue, UringQueue, VolumeFile};

/// Which queue serves files and devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Backend {
    /// io_uring, or threads where it is forbidden.
    Auto,
    IoUring,
    Threads,
}

/// How the I/O was done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Default)]
pub struct Engine {
    pub backend: &'static str,
    pub features: Vec<String>,
    pub degraded: Vec<String>,
}

impl Engine {
    /// Whether io_uring is to be used; if it cannot be, the reason is noted.
    ///
    /// # Errors
    /// [`DeviceError::NotSupported`] when it was asked for and cannot be had.
    pub(crate) fn choose(&mut self, backend: Backend) -> Result<bool, DeviceError> {
        if backend == Backend::Threads {
            return Ok(false);
        }
        match UringQueue::available() {
            Ok(()) => Ok(true),
            Err(error) if backend == Backend::IoUring => Err(error),
            Err(error) => {
                self.degraded.push(error.to_string());
                Ok(false)
            }
        }
    }

    /// Notes backend and features of a queue.
    pub(crate) fn note(&mut self, backend: &'static str, features: &[&'static str], degraded: &[String]) {
        self.backend = backend;
        self.features = features.iter().map(ToString::to_string).collect();
        for reason in degraded {
            if !self.degraded.contains(reason) {
                self.degraded.push(reason.clone());
            }
        }
    }
}

/// A queue on `volumes` for up to `depth` outstanding requests, with `frames` frames of `frame_bytes`, all zeros. It is
/// used by the thread that opens it.
///
/// # Errors
/// [`DeviceError::NotSupported`] when io_uring was asked for and cannot be had, [`DeviceError::Load`] when
/// `frame_bytes` is no multiple of 4096, [`DeviceError::Io`] or [`DeviceError::Queue`] when memory or threads cannot be
/// had.
pub fn open_data_queue(
    volumes: Vec<VolumeFile>,
    backend: Backend,
    frames: u32,
    frame_bytes: u32,
    clock: SessionClock,
    depth: u32,
) -> Result<(Box<dyn DataQueue>, Engine), DeviceError> {
    let mut engine = Engine::default();
    let uring = engine.choose(backend)?;
    let pool = BufferPool::of_frames(frames, frame_bytes, depth)?;
    if uring {
        let queue = UringQueue::new(volumes, pool, clock, depth)?;
        engine.note("io_uring", queue.features(), queue.degraded());
        Ok((Box::new(queue), engine))
    } else {
        engine.note("threads", &[], &[]);
        Ok((Box::new(ThreadQueue::new(volumes, pool, clock, depth)?), engine))
    }
}
