//! A headless Chromium, spoken to by its debugging protocol over pipes: no port, no network.
//!
//! # References
//! The Chrome DevTools Protocol, version 1.3; messages end with a zero byte on the descriptors 3 and 4.

use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// One page of a browser that ends with this.
pub(crate) struct Browser {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    asked: u64,
    session: Option<String>,
    /// What the page did since it was opened, as the protocol tells it.
    events: Vec<Value>,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// `None` where there is no Chromium.
    pub(crate) fn start() -> Option<Browser> {
        let version = Command::new("chromium").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        version.ok().filter(|status| status.success())?;
        let profile = tempfile::tempdir().unwrap();
        // The browser runs as root in a container, where its sandbox cannot; it opens files that this test made, and
        // nothing else. One that hangs is ended after ten minutes, which fails the test.
        let script = "exec timeout --signal=KILL 600 chromium --headless=new --no-sandbox --disable-gpu \
                      --disable-dev-shm-usage --no-first-run --disable-background-networking \
                      --disable-component-update --disable-sync --hide-scrollbars \
                      --remote-debugging-pipe --user-data-dir=\"$0\" 3<&0 4>&1 </dev/null >/dev/null 2>/dev/null";
        let mut command = Command::new("sh");
        command.args(["-c", script]).arg(profile.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut browser =
            Browser { child, input, output, asked: 0, session: None, events: Vec::new(), _profile: profile };
        let target = browser.ask("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let attached = browser.ask("Target.attachToTarget", attach);
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.ask(&format!("{domain}.enable"), json!({}));
        }
        Some(browser)
    }

    /// Opens a file on a screen so many points wide, and waits until it is loaded.
    pub(crate) fn open(&mut self, file: &Path, width: u32, scheme: &str) {
        let screen = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600});
        self.ask("Emulation.setDeviceMetricsOverride", screen);
        let scheme = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.ask("Emulation.setEmulatedMedia", scheme);
        self.events.clear();
        let navigated = self.ask("Page.navigate", json!({"url": format!("file://{}", file.display())}));
        assert!(navigated["errorText"].is_null(), "{navigated}");
        while !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
            let event = self.read();
            self.events.push(event);
        }
    }

    /// The value of an expression, awaited.
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let ask = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let answer = self.ask("Runtime.evaluate", ask);
        assert!(answer["exceptionDetails"].is_null(), "{}", answer["exceptionDetails"]);
        answer["result"]["value"].clone()
    }

    /// Whatever the page said on the console or failed at, since it was opened.
    pub(crate) fn said(&self) -> Vec<&Value> {
        let loud = ["Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"];
        self.events.iter().filter(|event| loud.iter().any(|method| event["method"] == *method)).collect()
    }

    /// Addresses that were asked for, the page's own first.
    pub(crate) fn requests(&self) -> Vec<String> {
        let sent = self.events.iter().filter(|event| event["method"] == "Network.requestWillBeSent");
        sent.filter_map(|event| Some(event["params"]["request"]["url"].as_str()?.to_owned())).collect()
    }

    /// The whole page as PNG.
    pub(crate) fn picture(&mut self) -> Vec<u8> {
        let shot = self.ask("Page.captureScreenshot", json!({"format": "png", "captureBeyondViewport": true}));
        BASE64.decode(shot["data"].as_str().unwrap()).unwrap()
    }

    /// The page as it prints.
    pub(crate) fn print(&mut self) -> Vec<u8> {
        let printed = self.ask("Page.printToPDF", json!({"printBackground": true}));
        BASE64.decode(printed["data"].as_str().unwrap()).unwrap()
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.asked += 1;
        let mut message = json!({"id": self.asked, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.input.write_all(format!("{message}\0").as_bytes()).unwrap();
        self.input.flush().unwrap();
        loop {
            let answer = self.read();
            match answer["id"] == self.asked {
                true if answer["error"].is_null() => return answer["result"].clone(),
                true => panic!("{method}: {}", answer["error"]),
                false => self.events.push(answer),
            }
        }
    }

    fn read(&mut self) -> Value {
        let mut message = Vec::new();
        let length = self.output.read_until(0, &mut message).unwrap();
        assert!(length > 0, "the browser ended");
        message.pop();
        serde_json::from_slice(&message).unwrap()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.input.write_all(b"{\"id\":0,\"method\":\"Browser.close\"}\0");
        let _ = self.child.wait();
    }
}
