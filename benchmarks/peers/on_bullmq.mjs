// BullMQ, with the command line that program.py describes.
// Its documentation: https://docs.bullmq.io

import * as fs from "node:fs";
import { createRequire } from "node:module";
import { Queue, Worker } from "bullmq";

const FOLDER = process.env.BENCH_TALLY ?? ".";
const connection = { url: process.env.BENCH_REDIS_URL ?? "redis://127.0.0.1:6379/0" };
const CHUNK = 1000;
const [command, ...rest] = process.argv.slice(2);
const numbers = rest.map(Number);

const nowNs = () => process.hrtime.bigint();
const place = Buffer.alloc(8);

function writeAt(descriptor, number, value) {
  place.writeBigUInt64LE(BigInt(value));
  fs.writeSync(descriptor, place, 0, 8, number * 8);
}

function open(name) {
  const path = `${FOLDER}/${name}`;
  return fs.openSync(path, fs.constants.O_RDWR | fs.constants.O_CREAT, 0o666);
}

function handlers() {
  const started = open("started");
  const counter = open(`count-${process.pid}`);
  let count = 0;
  return {
    noop: async () => {
      count += 1;
      writeAt(counter, 0, count);
      return count;
    },
    numbered: async (job) => {
      writeAt(started, job.data, nowNs());
      return 1;
    },
    sleeper: async (job) => {
      fs.appendFileSync(`${FOLDER}/sleeps`, `${nowNs()}\n`);
      await new Promise((wake) => setTimeout(wake, job.data * 1000));
    },
  };
}

function work(options) {
  const handler = handlers();
  const worker = new Worker("bench", (job) => handler[job.name](job), { connection, ...options });
  worker.on("error", (error) => console.error(error.message));
  process.on("SIGTERM", async () => {
    await worker.close();
    process.exit(0);
  });
}

async function submitting(does) {
  const queue = new Queue("bench", { connection });
  await queue.waitUntilReady();
  console.log(JSON.stringify(await does(queue)));
  await queue.close();
}

async function single(queue, tasks, size) {
  const text = "x".repeat(size);
  for (let number = 0; number < 20; number += 1) await queue.add("noop", text);
  const begin = nowNs();
  for (let number = 0; number < tasks; number += 1) await queue.add("noop", text);
  return Number(nowNs() - begin) / 1e9;
}

async function bulk(queue, tasks, size) {
  const text = "x".repeat(size);
  await queue.add("noop", text);
  const begin = nowNs();
  for (let first = 0; first < tasks; first += CHUNK) {
    const many = Math.min(CHUNK, tasks - first);
    await queue.addBulk(Array.from({ length: many }, () => ({ name: "noop", data: text })));
  }
  return Number(nowNs() - begin) / 1e9;
}

async function paced(queue, tasks, pauseUs) {
  const began = [];
  let due = nowNs();
  for (let number = 0; number < tasks; number += 1) {
    due += BigInt(pauseUs * 1000);
    const leftMs = Number(due - nowNs()) / 1e6;
    if (leftMs > 2) await new Promise((wake) => setTimeout(wake, leftMs - 1));
    while (nowNs() < due) await new Promise(setImmediate);
    began.push(Number(nowNs()));
    await queue.add("numbered", number);
  }
  return began;
}

function describe() {
  const { version } = createRequire(import.meta.url)("bullmq/package.json");
  const setting = "concurrency 100; addBulk; one Node process for each process";
  const about = { name: "BullMQ", version, acknowledges: "after", setting, alone: true };
  console.log(JSON.stringify(about));
}

if (command === "describe") describe();
else if (command === "worker") {
  work({ concurrency: 100 });
} else if (command === "worker-default") work({});
else if (command === "single") await submitting((queue) => single(queue, ...numbers));
else if (command === "bulk") await submitting((queue) => bulk(queue, ...numbers));
else if (command === "paced") await submitting((queue) => paced(queue, ...numbers));
else if (command === "sleeper") await submitting((queue) => queue.add("sleeper", 2).then(() => null));
else throw new Error(`unknown command ${command}`);
