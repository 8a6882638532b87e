//! Statements of the user's own on SQL Server: as text, or in a call of `sp_executesql`, whose plan the server keeps.

use tiberius::{ColumnData, Query, QueryItem, QueryStream};

use super::{Mssql, next_item, push_cell, value_of};
use crate::{
    batch::Results,
    error::DbError,
    own::{Answers, Asked, Protocol},
};

impl Mssql {
    pub(super) async fn ask_own(&mut self, asked: Asked<'_>, answers: Option<&mut Answers>) -> Result<(), DbError> {
        // What begins or ends a transaction must not be in a call (error 266), and has no parameters.
        if asked.protocol == Protocol::Simple || asked.values.is_empty() {
            return read(self.client.simple_query(asked.text).await?, answers).await;
        }
        let mut query = Query::new(asked.text);
        for value in asked.values.iter() {
            query.bind(value.map_or(Ok(ColumnData::String(None)), value_of)?);
        }
        read(query.query(&mut self.client).await?, answers).await
    }
}

/// Reads all answers to a statement.
async fn read(mut answer: QueryStream<'_>, mut answers: Option<&mut Answers>) -> Result<(), DbError> {
    let mut cells = Results::default();
    while let Some(item) = next_item(&mut answer).await? {
        let Some(answers) = answers.as_deref_mut() else { continue };
        match item {
            QueryItem::Metadata(metadata) => {
                answers.begin();
                metadata.columns().iter().for_each(|column| answers.column(column.name().as_bytes()));
            }
            QueryItem::Row(row) => {
                cells.clear();
                cells.begin_statement();
                cells.begin_row()?;
                row.cells().for_each(|(_, cell)| push_cell(cell, &mut cells));
                answers.begin_row();
                let found = cells.row(0, 0);
                (0..row.len()).for_each(|column| answers.cell(found.and_then(|row| row.text(column))));
            }
        }
    }
    if let Some(answers) = answers
        && answers.is_empty()
    {
        answers.end();
    }
    Ok(())
}
