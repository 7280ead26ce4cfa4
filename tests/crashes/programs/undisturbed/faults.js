// V8 finds accesses beyond the memory of WebAssembly by SIGSEGV: faults.js {well,abort,worker}
const { Worker, isMainThread } = require("worker_threads");
const { spawnSync } = require("child_process");

// (module (memory 1) (func (export "read") (param i32) (result i32) (i32.load (local.get 0))))
const bytes = Uint8Array.from([
  0, 97, 115, 109, 1, 0, 0, 0, 1, 6, 1, 96, 1, 127, 1, 127, 3, 2, 1, 0, 5, 3, 1, 0, 1, 7, 8, 1, 4, 114, 101, 97, 100, 0,
  0, 10, 9, 1, 7, 0, 32, 0, 40, 2, 0, 11,
]);

function beyond() {
  const { read } = new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports;
  let traps = 0;
  for (let i = 0; i < 1000; i++) {
    try {
      read(i % 2 ? 0 : 0x7ffffff0);
    } catch (error) {
      traps++;
    }
  }
  console.log("traps:", traps);
}

if (!isMainThread) {
  beyond();
} else {
  beyond();
  const recurse = (n) => recurse(n + 1) + 1;
  try {
    recurse(0);
  } catch (error) {
    console.log(error.constructor.name);
  }
  console.log("child:", spawnSync("sh", ["-c", "kill -SEGV $$"]).signal);
  new Worker(__filename).on("exit", (code) => {
    console.log("worker ended:", code);
    if (process.argv[2] === "abort") process.abort();
    process.exit(4);
  });
}
