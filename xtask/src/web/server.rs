//! Static files for a browser on this machine. Whoever publishes them takes a server of their own.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::thread;

/// What may be asked for, and what it is.
const FILES: [(&str, &str); 6] = [
    ("index.html", "text/html; charset=utf-8"),
    ("page.css", "text/css; charset=utf-8"),
    ("page.js", "text/javascript; charset=utf-8"),
    ("worker.js", "text/javascript; charset=utf-8"),
    ("hoist.js", "text/javascript; charset=utf-8"),
    ("hoist_bg.wasm", "application/wasm"),
];

/// Answers until the process ends.
pub(super) fn serve(listener: &TcpListener, folder: &Path) {
    for stream in listener.incoming().flatten() {
        let folder = folder.to_owned();
        thread::spawn(move || {
            // who went away needs no answer
            let _ = answer(&stream, &folder);
        });
    }
}

/// Answers one request, and ends the connection.
fn answer(mut stream: &TcpStream, folder: &Path) -> io::Result<()> {
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    // all of it is read: a connection with something unread is cut
    while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
    let mut words = first.split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let name = match path.split('?').next().unwrap_or_default().trim_start_matches('/') {
        "" => "index.html",
        name => name,
    };
    let known = FILES.iter().find(|(known, _)| *known == name);
    let (status, kind, body) = match known {
        Some((name, kind)) if method == "GET" => ("200 OK", *kind, fs::read(folder.join(name))?),
        _ => ("404 Not Found", "text/plain", Vec::new()),
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nX-Content-Type-Options: nosniff\r\n\
         Cache-Control: no-cache\r\nConnection: close\r\n\r\n",
        body.len()
    )?;
    stream.write_all(&body)
}
