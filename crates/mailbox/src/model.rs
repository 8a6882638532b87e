//! A modelled array as a queue without bytes.

use assay_array_model::{Model, Reading, Telemetry};
use assay_load::{Completion, DataQueue, Queue, QueueError, Request, SimulatedQueue};

/// A modelled array on its own clock, and its readings.
pub struct ModelQueue {
    queue: SimulatedQueue<Model>,
    telemetry: Telemetry,
}

impl ModelQueue {
    pub fn new(model: Model) -> Self {
        let telemetry = Telemetry::new(&model);
        Self { queue: SimulatedQueue::new(model), telemetry }
    }

    /// Reads the array's work since the last call.
    pub(crate) fn read(&mut self) -> Vec<Reading> {
        let now_ns = self.queue.now_ns();
        self.telemetry.read(self.queue.model(), now_ns);
        self.telemetry.take()
    }

    /// Whether as much goes to the disks as is written.
    pub(crate) fn settled(&self) -> bool {
        self.telemetry.settled()
    }
}

impl Queue for ModelQueue {
    fn now_ns(&mut self) -> u64 {
        self.queue.now_ns()
    }

    fn submit(&mut self, requests: &[Request]) -> Result<(), QueueError> {
        self.queue.submit(requests)
    }

    fn wait(&mut self, min: usize, until_ns: u64, completions: &mut Vec<Completion>) -> Result<(), QueueError> {
        self.queue.wait(min, until_ns, completions)
    }
}

impl DataQueue for ModelQueue {
    fn frame_bytes(&self) -> u32 {
        0
    }

    fn frame(&mut self, frame: u32) -> &mut [u8] {
        unreachable!("a model holds no bytes, and has no frame {frame}")
    }

    fn frame_of_piece(&self, _volume: u16, first: u32, piece: u32, _pieces: u32) -> u32 {
        first + piece
    }

    fn resize(&mut self, _volume: u16, _size_bytes: u64) -> Result<(), i32> {
        const EINVAL: i32 = 22;
        Err(-EINVAL)
    }
}
