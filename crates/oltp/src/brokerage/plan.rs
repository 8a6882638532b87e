use serde::Deserialize;

/// What beside the number of customers decides the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) struct Shape {
    /// Days of trading that lie behind the database.
    #[serde(default = "days")]
    pub(super) days: u32,
    /// Length of the text of a news item.
    #[serde(default = "news_bytes")]
    pub(super) news_bytes: u32,
}

fn days() -> u32 {
    10
}

fn news_bytes() -> u32 {
    100_000
}
