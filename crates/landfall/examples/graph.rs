//! A graph of one's own in memory, that is there again after a power cut.
//!
//! `cargo run -p landfall --example graph -- DIR 1-2 2-3 3-1` adds edges; without edges it says what is there.
//!
//! It is one part, since any edge may join any two nodes; so that a snapshot holds up nobody for long, a node's
//! neighbours are shared between the graph and what a snapshot is written from, until they change.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::ExitCode;
use std::sync::Arc;

use landfall::{BoxedError, Journaled, State, StateOptions};

type Node = u32;

/// Who is joined to whom.
#[derive(Default)]
struct Graph(BTreeMap<Node, Arc<Vec<Node>>>);

impl State for Graph {
    /// An edge.
    type Command = (Node, Node);
    /// Whether it is new.
    type Output = bool;
    type Capture = BTreeMap<Node, Arc<Vec<Node>>>;

    fn apply(&mut self, (from, to): (Node, Node)) -> bool {
        let neighbours = Arc::make_mut(self.0.entry(from).or_default());
        let is_new = !neighbours.contains(&to);
        if is_new {
            neighbours.push(to);
        }
        is_new
    }

    fn encode((from, to): &(Node, Node), out: &mut Vec<u8>) -> Result<(), BoxedError> {
        Ok(write!(out, "{from}-{to}")?)
    }

    fn decode(bytes: &[u8]) -> Result<(Node, Node), BoxedError> {
        edge(std::str::from_utf8(bytes)?)
    }

    fn capture(&self) -> Self::Capture {
        self.0.clone()
    }

    fn write(capture: Self::Capture, out: &mut dyn Write) -> io::Result<()> {
        for (from, neighbours) in capture {
            for to in &*neighbours {
                writeln!(out, "{from}-{to}")?;
            }
        }
        Ok(())
    }

    fn read(input: &mut dyn Read) -> io::Result<Graph> {
        let mut graph = Graph::default();
        for line in BufReader::new(input).lines() {
            graph.apply(edge(&line?).map_err(io::Error::other)?);
        }
        Ok(graph)
    }
}

fn edge(text: &str) -> Result<(Node, Node), BoxedError> {
    let (from, to) = text.split_once('-').ok_or("an edge is written 1-2")?;
    Ok((from.parse()?, to.parse()?))
}

fn run() -> Result<(), BoxedError> {
    let mut words = std::env::args().skip(1);
    let directory = words.next().ok_or("usage: graph DIR [FROM-TO]…")?;
    let graph = Journaled::<Graph>::open(directory, StateOptions::default())?;
    for word in words {
        let is_new = graph.apply(edge(&word)?)?;
        println!("{word} {}", if is_new { "is durable" } else { "was there" });
    }
    graph.read(0, |graph| {
        for (from, neighbours) in &graph.0 {
            println!("{from}: {neighbours:?}");
        }
    });
    graph.close()?;
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("graph: {error}");
            ExitCode::FAILURE
        }
    }
}
