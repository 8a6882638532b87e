//! What comes to the thread that owns the model: I/Os and commands, in order.

use std::{
    sync::{Condvar, Mutex, MutexGuard, PoisonError, mpsc::SyncSender},
    time::Duration,
};

use serde_json::Value;

use crate::{command::Command, io::Io};

pub(crate) enum Message {
    Io(Io),
    Command(Command, SyncSender<Result<Value, String>>),
    Attribute(AttributeCall),
    /// How long the way to the array and back takes, and how many go through in a second.
    Floor(u64, f64),
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
    messages: Mutex<Vec<Message>>,
    came: Condvar,
}

impl Inbox {
    fn locked(&self) -> MutexGuard<'_, Vec<Message>> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn put(&self, message: Message) {
        let mut messages = self.locked();
        messages.push(message);
        if messages.len() == 1 {
            drop(messages);
            self.came.notify_one();
        }
    }

    /// Takes all there is; waits for the first no longer than `most`.
    pub(crate) fn take(&self, most: Duration, messages: &mut Vec<Message>) {
        let mut held = self.locked();
        if held.is_empty() && !most.is_zero() {
            held = self.came.wait_timeout(held, most).unwrap_or_else(PoisonError::into_inner).0;
        }
        std::mem::swap(&mut *held, messages);
    }
}
