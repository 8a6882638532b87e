//! Statements of the user's own on PostgreSQL, one after the other or in a pipeline.

use bytes::{Buf, BufMut, BytesMut};
use postgres_protocol::{
    IsNull,
    message::{backend as tags, frontend},
};

use super::Postgresql;
use crate::{
    error::DbError,
    own::{Answers, Asked, Protocol},
    postgresql::wire::last_words,
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
    /// The server is to answer so many times that it is ready.
    syncs: u32,
    is_simple: bool,
    pub(super) in_transaction: bool,
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
}

impl Postgresql {
    /// Puts a statement into the bytes that go next.
    pub(super) fn put_own(&mut self, asked: Asked<'_>, describes: bool) -> Result<(), DbError> {
        let out = &mut self.wire.out;
        let name = match asked.protocol {
            Protocol::Simple => return Ok(frontend::query(asked.text, out)?),
            Protocol::Extended => "",
            Protocol::Prepared => asked.name,
        };
        if asked.protocol == Protocol::Extended {
            frontend::parse("", asked.text, [], out)?;
        } else if !self.own.has(asked.id) {
            self.own.preparing.push(asked.id);
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
    pub(super) fn sync_own(&mut self) {
        frontend::sync(&mut self.wire.out);
        self.own.syncs += 1;
    }

    pub(super) async fn ask_own(&mut self, asked: Asked<'_>, answers: Option<&mut Answers>) -> Result<(), DbError> {
        self.own.is_simple = asked.protocol == Protocol::Simple;
        self.put_own(asked, answers.is_some())?;
        if self.own.is_simple {
            self.own.syncs += 1;
        } else {
            self.sync_own();
        }
        self.flush_own(answers).await
    }

    /// Prepares statements before a pipeline begins: inside it, that would take a snapshot before its first statement.
    pub(super) async fn prepare_own<'a>(&mut self, asked: impl Iterator<Item = Asked<'a>>) -> Result<(), DbError> {
        for one in asked.filter(|one| one.protocol == Protocol::Prepared) {
            if !self.own.has(one.id) {
                frontend::parse(one.name, one.text, [], &mut self.wire.out)?;
                self.own.preparing.insert(0, one.id);
            }
        }
        if self.own.preparing.is_empty() {
            return Ok(());
        }
        self.own.is_simple = false;
        self.sync_own();
        self.flush_own(None).await
    }

    /// Sends the statements that were put, and reads until the server is ready. After an error the transaction is ended.
    pub(super) async fn flush_own(&mut self, mut answers: Option<&mut Answers>) -> Result<(), DbError> {
        self.wire.send().await?;
        let mut failed: Option<DbError> = None;
        let mut status = b'I';
        while self.own.syncs > 0 {
            let answer = match self.wire.receive().await {
                Ok(answer) => answer,
                Err(ended) => return Err(last_words(failed, ended)),
            };
            match answer.tag {
                tags::PARSE_COMPLETE_TAG => self.own.has_prepared(),
                tags::ROW_DESCRIPTION_TAG => {
                    if let Some(answers) = answers.as_deref_mut() {
                        read_columns(self.wire.body(answer), answers)?;
                    }
                }
                tags::DATA_ROW_TAG => {
                    if let Some(answers) = answers.as_deref_mut() {
                        read_row(self.wire.body(answer), answers)?;
                    }
                }
                tags::COMMAND_COMPLETE_TAG | tags::EMPTY_QUERY_RESPONSE_TAG => {
                    if let Some(answers) = answers.as_deref_mut() {
                        answers.end();
                    }
                }
                tags::COPY_IN_RESPONSE_TAG => {
                    frontend::copy_fail(NO_COPY, &mut self.wire.out)?;
                    if !self.own.is_simple {
                        // The server overlooked the one that it had.
                        frontend::sync(&mut self.wire.out);
                    }
                    self.wire.send().await?;
                }
                tags::ERROR_RESPONSE_TAG => {
                    let error = self.wire.error(answer);
                    failed.get_or_insert(error);
                }
                tags::READY_FOR_QUERY_TAG => {
                    status = self.wire.body(answer).first().copied().unwrap_or(b'I');
                    self.own.syncs -= 1;
                }
                _ => (),
            }
        }
        self.own.preparing.clear();
        self.own.in_transaction = status != b'I';
        let Some(error) = failed else { return Ok(()) };
        self.roll_back_own().await?;
        Err(error)
    }

    /// Ends a transaction that is open.
    pub(super) async fn roll_back_own(&mut self) -> Result<(), DbError> {
        if !self.own.in_transaction {
            return Ok(());
        }
        frontend::query("ROLLBACK", &mut self.wire.out)?;
        self.wire.send().await?;
        while self.wire.receive().await?.tag != tags::READY_FOR_QUERY_TAG {}
        self.own.in_transaction = false;
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
