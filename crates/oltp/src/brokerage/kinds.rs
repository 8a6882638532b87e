//! Kinds of trades.

/// Kinds of trades in the order of their table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TradeType {
    MarketBuy,
    MarketSell,
    StopLoss,
    LimitSell,
    LimitBuy,
}

impl TradeType {
    pub(crate) const ALL: [Self; 5] =
        [Self::MarketBuy, Self::MarketSell, Self::StopLoss, Self::LimitSell, Self::LimitBuy];

    pub(crate) fn id(self) -> &'static str {
        match self {
            Self::MarketBuy => "TMB",
            Self::MarketSell => "TMS",
            Self::StopLoss => "TSL",
            Self::LimitSell => "TLS",
            Self::LimitBuy => "TLB",
        }
    }

    pub(crate) fn of_id(id: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.id().as_bytes() == id)
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::MarketBuy => "Market-Buy",
            Self::MarketSell => "Market-Sell",
            Self::StopLoss => "Stop-Loss",
            Self::LimitSell => "Limit-Sell",
            Self::LimitBuy => "Limit-Buy",
        }
    }

    pub(crate) fn sells(self) -> bool {
        matches!(self, Self::MarketSell | Self::StopLoss | Self::LimitSell)
    }

    pub(crate) fn is_market(self) -> bool {
        matches!(self, Self::MarketBuy | Self::MarketSell)
    }

    /// Whether a limit order is executed at a price.
    pub(crate) fn triggers(self, price_cents: i64, limit_cents: i64) -> bool {
        match self {
            Self::MarketBuy | Self::MarketSell => true,
            Self::StopLoss | Self::LimitBuy => price_cents <= limit_cents,
            Self::LimitSell => price_cents >= limit_cents,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_trigger_on_their_side() {
        assert!(TradeType::LimitBuy.triggers(2400, 2500) && !TradeType::LimitBuy.triggers(2600, 2500));
        assert!(TradeType::LimitSell.triggers(2600, 2500) && !TradeType::LimitSell.triggers(2400, 2500));
        assert!(TradeType::StopLoss.triggers(2400, 2500) && !TradeType::StopLoss.triggers(2600, 2500));
    }
}
