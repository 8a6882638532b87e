//! Messages to the thread that owns the model: I/Os and commands, in order.

use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc::SyncSender},
    time::Duration,
};

use serde_json::Value;

use crate::{command::Command, io::Io};

pub(crate) enum Message {
    Io(Io),
    Command(Command, SyncSender<Result<Value, String>>),
    Attribute(AttributeCall),
    /// How many I/Os go through in a second, one at a time.
    Most(f64),
    /// Something happened on a way to the volumes.
    Note(String),
    Stop,
}

/// Attributes of volumes belong to the store, and so to its thread.
pub(crate) struct AttributeCall {
    pub(crate) volume: u16,
    pub(crate) what: AttributeKind,
    pub(crate) answer: Box<dyn FnOnce(Result<Vec<u8>, i32>) + Send>,
}

pub(crate) enum AttributeKind {
    Get(String),
    Set(String, Vec<u8>),
    Remove(String),
    List,
}

#[derive(Default)]
pub(crate) struct Inbox {
    held: Mutex<Held>,
    came: Condvar,
}

#[derive(Default)]
struct Held {
    messages: Vec<Message>,
    is_closed: bool,
}

/// Closes the inbox when the thread that reads it ends, however it ends: who waits for an answer is told that none comes.
pub(crate) struct Closing(pub(crate) Arc<Inbox>);

impl Drop for Closing {
    fn drop(&mut self) {
        let mut held = self.0.locked();
        held.is_closed = true;
        drop(std::mem::take(&mut held.messages));
    }
}

impl Inbox {
    fn locked(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a message; drops it if the thread has ended.
    pub(crate) fn put(&self, message: Message) {
        let mut held = self.locked();
        if held.is_closed {
            return;
        }
        held.messages.push(message);
        if held.messages.len() == 1 {
            drop(held);
            self.came.notify_one();
        }
    }

    /// Takes all there is; waits for the first no longer than `most`.
    pub(crate) fn take(&self, most: Duration, messages: &mut Vec<Message>) {
        let mut held = self.locked();
        if held.messages.is_empty() && !most.is_zero() {
            held = self.came.wait_timeout(held, most).unwrap_or_else(PoisonError::into_inner).0;
        }
        std::mem::swap(&mut held.messages, messages);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::*;

    #[test]
    fn who_waits_for_a_thread_that_ended_is_told_at_once() {
        let inbox = Arc::new(Inbox::default());
        let closing = Closing(Arc::clone(&inbox));
        let (before, before_answered) = sync_channel(1);
        inbox.put(Message::Command(Command::Status {}, before));
        drop(closing);
        let (after, after_answered) = sync_channel(1);
        inbox.put(Message::Command(Command::Status {}, after));
        assert!(before_answered.recv().is_err());
        assert!(after_answered.recv().is_err());
    }
}
