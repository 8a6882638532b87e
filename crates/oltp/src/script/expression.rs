//! Expressions of `\set` and `\if`, read into steps of a machine with a stack: evaluating one neither recurses nor allocates.

use super::{
    functions::{FUNCTIONS, Function, function_named},
    names::Names,
    tokens::{Mistake, Token, Tokens},
    value::Value,
};

/// Parentheses, functions and prefixes within one another that are followed.
const NESTED_MAX: u32 = 200;

/// A step of the machine. Jumps are relative to the next step, so that pieces of an expression can be moved.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Step {
    Push(Value),
    Variable(u16),
    /// Takes its arguments, and pushes the result.
    Call(Function, u8),
    /// Left side of AND (`false`) or OR (`true`): a value that decides, or null, is the result, and the right side is skipped.
    Decide(bool, u32),
    /// Right side of AND or OR: null or a truth.
    Truth,
    /// Takes a value, and skips so many steps unless it is true.
    SkipUnless(u32),
    Skip(u32),
}

/// An expression, as steps that leave one value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Expression(pub(crate) Box<[Step]>);

/// How tightly an operator binds, from the loosest on (the SQL parser of PostgreSQL).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Any,
    Or,
    And,
    Not,
    Is,
    Compare,
    Bits,
    Sum,
    Product,
    Unary,
}

impl Level {
    fn tighter(self) -> Self {
        use Level::*;
        match self {
            Any => Or,
            Or => And,
            And => Not,
            Not => Is,
            Is => Compare,
            Compare => Bits,
            Bits => Sum,
            Sum => Product,
            Product | Unary => Unary,
        }
    }
}

struct Parser<'a> {
    tokens: Tokens<'a>,
    names: &'a mut Names,
    steps: Vec<Step>,
    nested: u32,
}

/// Reads the expression that a text is, to its end.
pub(crate) fn parse(text: &str, names: &mut Names) -> Result<Expression, Mistake> {
    let mut parser = Parser { tokens: Tokens::new(text)?, names, steps: Vec::new(), nested: 0 };
    parser.expression(Level::Any)?;
    match parser.tokens.peek() {
        Token::End => Ok(Expression(parser.steps.into())),
        _ => Err(parser.unexpected()),
    }
}

impl Parser<'_> {
    fn mistake(&self, text: impl Into<String>) -> Mistake {
        Mistake { text: text.into(), at: self.tokens.at() }
    }

    fn unexpected(&self) -> Mistake {
        self.mistake("syntax error")
    }

    fn advance(&mut self) -> Result<Token, Mistake> {
        self.tokens.advance()
    }

    fn expect(&mut self, token: Token) -> Result<(), Mistake> {
        if self.tokens.peek() != token {
            return Err(self.unexpected());
        }
        self.advance().map(|_| ())
    }

    /// Reads an expression whose operators bind at least so tightly.
    fn expression(&mut self, least: Level) -> Result<(), Mistake> {
        if self.nested == NESTED_MAX {
            return Err(self.mistake(format!("expressions within {NESTED_MAX} others are not read")));
        }
        self.nested += 1;
        let read = self.operators(least);
        self.nested -= 1;
        read
    }

    fn operators(&mut self, least: Level) -> Result<(), Mistake> {
        let start = self.steps.len();
        self.operand()?;
        let mut has_compared = false;
        loop {
            let token = self.tokens.peek();
            let Some(level) = level_of(token) else { return Ok(()) };
            if level < least {
                return Ok(());
            }
            if level == Level::Compare && has_compared {
                return Err(self.unexpected());
            }
            has_compared = level == Level::Compare;
            self.advance()?;
            let middle = self.steps.len();
            match token {
                Token::And | Token::Or => {
                    self.steps.push(Step::Decide(token == Token::Or, 0));
                    self.expression(level.tighter())?;
                    self.steps.push(Step::Truth);
                    let skipped = (self.steps.len() - middle - 1) as u32;
                    self.steps[middle] = Step::Decide(token == Token::Or, skipped);
                }
                Token::Is | Token::IsNull | Token::NotNull => self.state(token)?,
                _ => {
                    self.expression(level.tighter())?;
                    let (function, is_turned) = operator(token);
                    if is_turned {
                        // The right side comes first, as it is evaluated first.
                        self.steps[start..].rotate_left(middle - start);
                    }
                    self.steps.push(Step::Call(function, 2));
                }
            }
        }
    }

    /// `IS [NOT] NULL | TRUE | FALSE`, `ISNULL`, `NOTNULL`, behind their operand.
    fn state(&mut self, token: Token) -> Result<(), Mistake> {
        let mut is_not = token == Token::NotNull;
        let mut state = Value::Null;
        if token == Token::Is {
            if self.tokens.peek() == Token::Not {
                self.advance()?;
                is_not = true;
            }
            state = match self.tokens.peek() {
                Token::Constant(state @ (Value::Null | Value::Bool(_))) => state,
                _ => return Err(self.unexpected()),
            };
            self.advance()?;
        }
        self.steps.push(Step::Push(state));
        self.steps.push(Step::Call(Function::Is, 2));
        if is_not {
            self.steps.push(Step::Call(Function::Not, 1));
        }
        Ok(())
    }

    fn operand(&mut self) -> Result<(), Mistake> {
        let at = self.tokens.at();
        match self.advance()? {
            Token::Plus => self.expression(Level::Unary),
            Token::Minus if self.tokens.peek() == Token::BeyondInt => {
                self.advance()?;
                self.steps.push(Step::Push(Value::Int(i64::MIN)));
                Ok(())
            }
            Token::Minus => {
                self.steps.push(Step::Push(Value::Int(0)));
                self.expression(Level::Unary)?;
                self.call(Function::Subtract, 2)
            }
            Token::Tilde => {
                self.steps.push(Step::Push(Value::Int(-1)));
                self.expression(Level::Bits.tighter())?;
                self.call(Function::BitXor, 2)
            }
            Token::Not => {
                self.expression(Level::Not)?;
                self.call(Function::Not, 1)
            }
            Token::Open => {
                self.expression(Level::Any)?;
                self.expect(Token::Close)
            }
            Token::Constant(value) => {
                self.steps.push(Step::Push(value));
                Ok(())
            }
            Token::Variable => {
                let name = self.tokens.text_of_last();
                let slot = self.names.slot(&name[1..]).map_err(|text| Mistake { text, at })?;
                self.steps.push(Step::Variable(slot));
                Ok(())
            }
            Token::Name => self.function(at),
            Token::Case => self.case(),
            _ => Err(Mistake { text: "syntax error".into(), at }),
        }
    }

    fn call(&mut self, function: Function, count: u8) -> Result<(), Mistake> {
        self.steps.push(Step::Call(function, count));
        Ok(())
    }

    fn function(&mut self, at: usize) -> Result<(), Mistake> {
        let name = self.tokens.text_of_last().to_owned();
        let Some(known) = function_named(&name) else {
            let listed: Vec<_> = FUNCTIONS.iter().map(|known| known.name).collect();
            let text = format!("unexpected function name ({name}); known: {}", listed.join(", "));
            return Err(Mistake { text, at });
        };
        self.expect(Token::Open)?;
        let mut count = 0_usize;
        while self.tokens.peek() != Token::Close {
            if count > 0 {
                self.expect(Token::Comma)?;
            }
            self.expression(Level::Any)?;
            count += 1;
        }
        self.advance()?;
        if known.is_seeded() && known.check(count + 1).is_ok() {
            // The seed that all users of a run share.
            let slot = self.names.slot("default_seed").map_err(|text| Mistake { text, at })?;
            self.steps.push(Step::Variable(slot));
            count += 1;
        }
        known.check(count).map_err(|text| Mistake { text, at })?;
        self.call(known.function, count as u8)
    }

    /// `CASE WHEN condition THEN value ... [ELSE value] END`.
    fn case(&mut self) -> Result<(), Mistake> {
        let mut ends = Vec::new();
        self.expect(Token::When)?;
        loop {
            self.expression(Level::Any)?;
            self.expect(Token::Then)?;
            let condition = self.steps.len();
            self.steps.push(Step::SkipUnless(0));
            self.expression(Level::Any)?;
            ends.push(self.steps.len());
            self.steps.push(Step::Skip(0));
            self.steps[condition] = Step::SkipUnless((self.steps.len() - condition - 1) as u32);
            match self.advance()? {
                Token::When => (),
                Token::Else => {
                    self.expression(Level::Any)?;
                    self.expect(Token::EndOfCase)?;
                    break;
                }
                Token::EndOfCase => {
                    self.steps.push(Step::Push(Value::Null));
                    break;
                }
                _ => return Err(self.unexpected()),
            }
        }
        let end = self.steps.len();
        ends.into_iter().for_each(|place| self.steps[place] = Step::Skip((end - place - 1) as u32));
        Ok(())
    }
}

fn level_of(token: Token) -> Option<Level> {
    Some(match token {
        Token::Or => Level::Or,
        Token::And => Level::And,
        Token::Is | Token::IsNull | Token::NotNull => Level::Is,
        Token::Less | Token::LessOrEqual | Token::Greater | Token::GreaterOrEqual | Token::Equal | Token::NotEqual => {
            Level::Compare
        }
        Token::Pipe | Token::Hash | Token::Ampersand | Token::ShiftLeft | Token::ShiftRight => Level::Bits,
        Token::Plus | Token::Minus => Level::Sum,
        Token::Star | Token::Slash | Token::Percent => Level::Product,
        _ => return None,
    })
}

/// The function of an operator with two sides, and whether they change places.
fn operator(token: Token) -> (Function, bool) {
    match token {
        Token::Plus => (Function::Add, false),
        Token::Minus => (Function::Subtract, false),
        Token::Star => (Function::Multiply, false),
        Token::Slash => (Function::Divide, false),
        Token::Percent => (Function::Modulo, false),
        Token::Less => (Function::Less, false),
        Token::Greater => (Function::Less, true),
        Token::LessOrEqual => (Function::LessOrEqual, false),
        Token::GreaterOrEqual => (Function::LessOrEqual, true),
        Token::Equal => (Function::Equal, false),
        Token::NotEqual => (Function::NotEqual, false),
        Token::Pipe => (Function::BitOr, false),
        Token::Hash => (Function::BitXor, false),
        Token::Ampersand => (Function::BitAnd, false),
        Token::ShiftLeft => (Function::ShiftLeft, false),
        _ => (Function::ShiftRight, false),
    }
}
