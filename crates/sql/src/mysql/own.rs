//! Statements of the user's own on MariaDB and MySQL.

use mysql_async::{
    Error, Params, QueryResult, Value,
    consts::StatusFlags,
    prelude::{Protocol as Answering, Queryable},
};

use super::{Mysql, push_cell, value_of};
use crate::{
    batch::Results,
    error::{Cause, DbError},
    own::{Answers, Asked, Protocol},
};

/// Statements that the server takes as text alone (error 1295).
const NOT_PREPARED: u16 = 1295;

impl Mysql {
    pub(super) async fn ask_own(&mut self, asked: Asked<'_>, answers: Option<&mut Answers>) -> Result<(), DbError> {
        if asked.protocol == Protocol::Simple || self.as_text.get(asked.id).is_some() {
            return read(self.conn.query_iter(asked.text).await?, answers).await;
        }
        let values: Vec<_> = asked.values.iter().map(|value| value.map_or(Value::NULL, value_of)).collect();
        if asked.protocol == Protocol::Prepared
            && let Some(prepared) = self.prepared.get(asked.id)
        {
            return read(self.conn.exec_iter(prepared, Params::Positional(values)).await?, answers).await;
        }
        let prepared = match self.conn.prep(asked.text).await {
            Err(Error::Server(error)) if error.code == NOT_PREPARED && asked.values.is_empty() => {
                self.as_text.put(asked.id, ());
                return read(self.conn.query_iter(asked.text).await?, answers).await;
            }
            prepared => prepared?,
        };
        let params = if values.is_empty() { Params::Empty } else { Params::Positional(values) };
        read(self.conn.exec_iter(&prepared, params).await?, answers).await?;
        if asked.protocol == Protocol::Prepared {
            self.prepared.put(asked.id, prepared);
        } else {
            self.conn.close(prepared).await?;
        }
        Ok(())
    }

    /// As the server told with its last answer without rows.
    pub(super) fn is_in_transaction(&self) -> bool {
        let last = self.conn.last_ok_packet();
        last.is_some_and(|ok| ok.status_flags().contains(StatusFlags::SERVER_STATUS_IN_TRANS))
    }

    pub(super) async fn roll_back_own(&mut self) -> Result<(), DbError> {
        match self.conn.query_drop("ROLLBACK").await {
            Ok(()) => Ok(()),
            Err(lost) => Err(DbError::new(Cause::Connection, DbError::from(lost).text)),
        }
    }
}

/// Reads all answers to a statement.
async fn read<P: Answering>(
    mut answer: QueryResult<'_, '_, P>,
    mut answers: Option<&mut Answers>,
) -> Result<(), DbError> {
    let mut cells = Results::default();
    while !answer.is_empty() {
        if let Some(answers) = answers.as_deref_mut()
            && !answer.columns_ref().is_empty()
        {
            answers.begin();
            answer.columns_ref().iter().for_each(|column| answers.column(column.name_ref()));
        }
        while let Some(row) = answer.next().await? {
            let Some(answers) = answers.as_deref_mut() else { continue };
            cells.clear();
            cells.begin_statement();
            cells.begin_row()?;
            (0..row.len()).for_each(|column| push_cell(row.as_ref(column), &mut cells));
            answers.begin_row();
            let found = cells.row(0, 0);
            (0..row.len()).for_each(|column| answers.cell(found.and_then(|row| row.text(column))));
        }
        if let Some(answers) = answers.as_deref_mut() {
            answers.end();
        }
    }
    if let Some(answers) = answers
        && answers.is_empty()
    {
        answers.end();
    }
    Ok(answer.drop_result().await?)
}
