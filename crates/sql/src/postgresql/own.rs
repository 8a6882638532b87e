//! Statements of the user's own on PostgreSQL, one after the other or in a pipeline.

use bytes::{Buf, BufMut, BytesMut};
use postgres_protocol::{
    IsNull,
    message::{backend as tags, frontend},
};

use super::wire::{Wire, last_words};
use crate::{
    error::DbError,
    own::{Answers, Asked, Protocol},
    statements::StatementId,
};

/// Says that nothing is behind a statement that takes rows from the client.
const NO_COPY: &str = "COPY from the client has no place in a script";

/// State of the statements of the user's own on a connection.
#[derive(Default)]
pub(super) struct OwnState {
    /// Which of them are prepared, by number.
    prepared: Vec<bool>,
    /// Statements on their way to be prepared, the last first.
    preparing: Vec<StatementId>,
    /// Times that the server is still to answer that it is ready.
    syncs: u32,
    is_simple: bool,
    in_transaction: bool,
    /// Whether the client ends transactions that failed.
    leaves_open: bool,
}

impl OwnState {
    fn has(&self, id: StatementId) -> bool {
        self.prepared.get(usize::from(id.0)) == Some(&true)
    }

    fn has_prepared(&mut self) {
        let Some(id) = self.preparing.pop() else { return };
        let place = usize::from(id.0);
        if place >= self.prepared.len() {
            self.prepared.resize(place + 1, false);
        }
        self.prepared[place] = true;
    }

    /// Whether the last statement left a transaction open.
    pub(super) fn in_transaction(&self) -> bool {
        self.in_transaction
    }

    /// Leaves transactions that failed to the client.
    pub(super) fn leave_open(&mut self) {
        self.leaves_open = true;
    }

    /// Puts a statement into the bytes that go next.
    pub(super) fn put(&mut self, wire: &mut Wire, asked: Asked<'_>, describes: bool) -> Result<(), DbError> {
        let out = &mut wire.out;
        let name = match asked.protocol {
            Protocol::Simple => return Ok(frontend::query(asked.text, out)?),
            Protocol::Extended => "",
            Protocol::Prepared => asked.name,
        };
        if asked.protocol == Protocol::Extended {
            frontend::parse("", asked.text, [], out)?;
        } else if !self.has(asked.id) {
            self.preparing.push(asked.id);
            frontend::parse(name, asked.text, [], out)?;
        }
        let write = |value: Option<&[u8]>, out: &mut BytesMut| {
            let Some(value) = value else { return Ok(IsNull::Yes) };
            out.put_slice(value);
            Ok(IsNull::No)
        };
        let bound = frontend::bind("", name, [], asked.values.iter(), write, [], out);
        bound.map_err(|_| DbError::other("a parameter is longer than the protocol allows"))?;
        if describes {
            frontend::describe(b'P', "", out)?;
        }
        frontend::execute("", 0, out)?;
        Ok(())
    }

    /// Ends what goes together: an error in it ends nothing beyond.
    pub(super) fn sync(&mut self, wire: &mut Wire) {
        frontend::sync(&mut wire.out);
        self.syncs += 1;
    }

    pub(super) async fn ask(
        &mut self,
        wire: &mut Wire,
        asked: Asked<'_>,
        answers: Option<&mut Answers>,
    ) -> Result<(), DbError> {
        self.is_simple = asked.protocol == Protocol::Simple;
        self.put(wire, asked, answers.is_some())?;
        if self.is_simple {
            self.syncs += 1;
        } else {
            self.sync(wire);
        }
        self.flush(wire, answers).await
    }

    /// Prepares statements before a pipeline begins: inside it, that would take a snapshot before its first statement.
    pub(super) async fn prepare<'a>(
        &mut self,
        wire: &mut Wire,
        asked: impl Iterator<Item = Asked<'a>>,
    ) -> Result<(), DbError> {
        for one in asked.filter(|one| one.protocol == Protocol::Prepared) {
            if !self.has(one.id) {
                frontend::parse(one.name, one.text, [], &mut wire.out)?;
                self.preparing.insert(0, one.id);
            }
        }
        if self.preparing.is_empty() {
            return Ok(());
        }
        self.is_simple = false;
        self.sync(wire);
        self.flush(wire, None).await
    }

    /// Sends the statements that were put, and reads until the server is ready. After an error the transaction is ended, unless that is
    /// left to the client.
    pub(super) async fn flush(&mut self, wire: &mut Wire, mut answers: Option<&mut Answers>) -> Result<(), DbError> {
        wire.send().await?;
        let mut failed: Option<DbError> = None;
        let mut status = b'I';
        while self.syncs > 0 {
            let answer = match wire.receive().await {
                Ok(answer) => answer,
                Err(ended) => return Err(last_words(failed, ended)),
            };
            match answer.tag {
                tags::PARSE_COMPLETE_TAG => self.has_prepared(),
                tags::ROW_DESCRIPTION_TAG => {
                    if let Some(answers) = answers.as_deref_mut() {
                        read_columns(wire.body(answer), answers)?;
                    }
                }
                tags::DATA_ROW_TAG => {
                    if let Some(answers) = answers.as_deref_mut() {
                        read_row(wire.body(answer), answers)?;
                    }
                }
                tags::COMMAND_COMPLETE_TAG | tags::EMPTY_QUERY_RESPONSE_TAG => {
                    if let Some(answers) = answers.as_deref_mut() {
                        answers.end();
                    }
                }
                tags::COPY_IN_RESPONSE_TAG => {
                    frontend::copy_fail(NO_COPY, &mut wire.out)?;
                    if !self.is_simple {
                        // The server overlooked the one that it had.
                        frontend::sync(&mut wire.out);
                    }
                    wire.send().await?;
                }
                tags::ERROR_RESPONSE_TAG => {
                    let error = wire.error(answer);
                    failed.get_or_insert(error);
                }
                tags::READY_FOR_QUERY_TAG => {
                    status = wire.body(answer).first().copied().unwrap_or(b'I');
                    self.syncs -= 1;
                }
                _ => (),
            }
        }
        self.preparing.clear();
        self.in_transaction = status != b'I';
        let Some(error) = failed else { return Ok(()) };
        if !self.leaves_open {
            self.roll_back(wire).await?;
        }
        Err(error)
    }

    /// Ends a transaction that is open.
    pub(super) async fn roll_back(&mut self, wire: &mut Wire) -> Result<(), DbError> {
        if !self.in_transaction {
            return Ok(());
        }
        frontend::query("ROLLBACK", &mut wire.out)?;
        wire.send().await?;
        while wire.receive().await?.tag != tags::READY_FOR_QUERY_TAG {}
        self.in_transaction = false;
        Ok(())
    }
}

fn cut_off() -> DbError {
    DbError::connection("an answer of the server is cut off")
}

/// Reads the names of columns; what else is told of each has 18 bytes.
fn read_columns(mut body: &[u8], answers: &mut Answers) -> Result<(), DbError> {
    let count = body.try_get_u16().map_err(|_| cut_off())?;
    answers.begin();
    for _ in 0..count {
        let end = body.iter().position(|letter| *letter == 0).ok_or_else(cut_off)?;
        answers.column(&body[..end]);
        body = body.get(end + 1 + 18..).ok_or_else(cut_off)?;
    }
    Ok(())
}

fn read_row(mut body: &[u8], answers: &mut Answers) -> Result<(), DbError> {
    let count = body.try_get_u16().map_err(|_| cut_off())?;
    answers.begin_row();
    for _ in 0..count {
        let length = body.try_get_i32().map_err(|_| cut_off())?;
        if length < 0 {
            answers.cell(None);
            continue;
        }
        let (cell, rest) = body.split_at_checked(length as usize).ok_or_else(cut_off)?;
        answers.cell(Some(cell));
        body = rest;
    }
    Ok(())
}
