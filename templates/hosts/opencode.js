// installed by memtool: `memtool uninstall opencode` takes it away. Without this line it is yours.
//
// Runs memtool at each event and adds its answer to the system prompt. Nothing here may fail a turn:
// every hook catches everything, and an answer that takes too long is dropped.
// One file for both generations of OpenCode: 1.x calls `server`, 2.x calls `setup`.

import { spawn } from "node:child_process"

const PROGRAM = @PROGRAM@
const LIMIT_MS = 5000
const MOST_BYTES = 200000
const MOST_BLOCKS = 20
const MOST_SESSIONS = 50

/** Run `memtool hook opencode EVENT` with JSON on stdin; resolve to its text, "" for anything else. */
function ask(event, input) {
  return new Promise((resolve) => {
    let answer = ""
    const done = (text) => {
      clearTimeout(timer)
      resolve(text)
    }
    let child
    const timer = setTimeout(() => {
      child?.kill("SIGKILL")
      done("")
    }, LIMIT_MS)
    try {
      child = spawn(PROGRAM, ["hook", "opencode", event], {
        cwd: input.cwd,
        stdio: ["pipe", "pipe", "ignore"],
      })
      child.on("error", () => done(""))
      child.stdin.on("error", () => {})
      child.stdout.setEncoding("utf8")
      child.stdout.on("data", (data) => {
        if (answer.length < MOST_BYTES) answer += data
      })
      child.on("close", () => {
        try {
          const text = JSON.parse(answer).text
          done(typeof text === "string" ? text : "")
        } catch {
          done("")
        }
      })
      child.stdin.end(JSON.stringify(input))
    } catch {
      done("")
    }
  })
}

/** The texts of each session; the host builds the system prompt again for every request. */
function memory(cwd) {
  const sessions = new Map()

  function of(id) {
    let session = sessions.get(id)
    if (!session) {
      session = { source: "startup", primer: null, blocks: [], last: "" }
      sessions.set(id, session)
      if (sessions.size > MOST_SESSIONS) sessions.delete(sessions.keys().next().value)
    }
    return session
  }

  const given = (id, more) => ({ session_id: id, cwd, ...more })

  return {
    /** The texts for the system prompt of a session; the primer is asked for once. */
    async texts(id) {
      const session = of(id)
      session.primer ??= ask("session-start", given(id, { source: session.source }))
      return [await session.primer, ...session.blocks].filter(Boolean)
    },
    /** A prompt of the user: memtool's answer to it stays for the rest of the session. */
    async prompt(id, mark, prompt, files) {
      const session = of(id)
      if (!prompt || session.last === mark) return
      session.last = mark
      session.primer ??= ask("session-start", given(id, { source: session.source }))
      await session.primer
      const text = await ask("prompt", given(id, { prompt, files }))
      if (text) session.blocks = [...session.blocks, text].slice(-MOST_BLOCKS)
    },
    /** The context is about to be compacted: afterwards the session starts again. */
    async compacting(id) {
      await ask("compacting", given(id))
      sessions.delete(id)
      of(id).source = "compact"
    },
    async idle(id) {
      await ask("idle", given(id))
    },
    async deleted(id) {
      sessions.delete(id)
      await ask("deleted", given(id))
    },
  }
}

/** Wrap a hook so that it never throws. */
function safely(hook) {
  return async (...args) => {
    try {
      await hook(...args)
    } catch {
      // a memory that is missing must not cost a turn
    }
  }
}

const ENDS = { "session.idle": "idle", "session.deleted": "deleted" }

/** Handle an event of the bus, of either generation. */
async function onEvent(said, event) {
  const about = event?.properties ?? event?.data ?? {}
  const id = about.sessionID ?? about.info?.id
  const handle = ENDS[event?.type]
  if (id && handle) await said[handle](id)
}

/** Return the text and the files of the parts of a message. */
function read(parts) {
  const list = Array.isArray(parts) ? parts : []
  const texts = list.filter((part) => part?.type === "text" && !part.synthetic)
  const files = list.filter((part) => part?.type === "file")
  return {
    prompt: texts.map((part) => part.text).join("\n"),
    files: files.map((part) => part.source?.path ?? part.filename).filter(Boolean),
  }
}

async function server(ctx) {
  const said = memory(ctx?.directory ?? ctx?.worktree ?? process.cwd())
  return {
    "chat.message": safely(async (input, output) => {
      const { prompt, files } = read(output?.parts)
      await said.prompt(input.sessionID, input.messageID ?? prompt, prompt, files)
    }),
    "experimental.chat.system.transform": safely(async (input, output) => {
      if (!input?.sessionID) return
      output.system.push(...(await said.texts(input.sessionID)))
    }),
    "experimental.session.compacting": safely((input) => said.compacting(input.sessionID)),
    event: safely(({ event }) => onEvent(said, event)),
  }
}

/** The newest prompt of the messages of a request. */
function newest(messages) {
  const list = Array.isArray(messages) ? messages : []
  const last = list.filter((message) => (message?.role ?? message?.info?.role) === "user").at(-1)
  const parts = last?.parts ?? last?.content
  const { prompt, files } = typeof parts === "string" ? { prompt: parts, files: [] } : read(parts)
  return { mark: last?.id ?? last?.info?.id ?? prompt, prompt, files }
}

async function setup(ctx) {
  const said = memory(ctx?.location?.directory ?? process.cwd())
  await safely(async () => {
    await ctx.session.hook(
      "context",
      safely(async (event) => {
        if (!event?.sessionID) return
        const { mark, prompt, files } = newest(event.messages)
        await said.prompt(event.sessionID, mark, prompt, files)
        for (const text of await said.texts(event.sessionID)) event.system.push({ type: "text", text })
      }),
    )
  })()
  await safely(() => ctx.session.hook("compaction", safely((event) => said.compacting(event.sessionID))))()
  const stop = new AbortController()
  safely(async () => {
    for await (const event of ctx.event.subscribe({ signal: stop.signal })) {
      await safely(onEvent)(said, event)
    }
  })()
  return () => stop.abort()
}

export default { id: "memtool", server, setup }
