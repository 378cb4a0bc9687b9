// installed by memtool: `memtool uninstall opencode` takes it away. Without this line it is yours.
//
// Runs memtool at each event and adds its answer to the prompt that it is for, or to the result of
// the tool. Nothing here may fail a turn: every hook catches everything, and an answer that takes too
// long is dropped. A command with a failure on record is held once: its result is that failure.
// One file for both generations of OpenCode: 1.x calls `server`, 2.x calls `setup`.

import { spawn, spawnSync } from "node:child_process"

const PROGRAM = @PROGRAM@
const LIMIT_MS = 5000
const END_LIMIT_MS = 2000
const MOST_BYTES = 200000
const MOST_BLOCKS = 20
const MOST_SESSIONS = 50
/** The tool that runs commands. */
const SHELL = "bash"
/** Tools that memtool answers: they change files, show one, or run a command. */
const ANSWERED = new Set(["apply_patch", SHELL, "edit", "multiedit", "patch", "read", "write"])

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

/** What each session was given; 2.x builds the system prompt again for every request. */
function memory(cwd) {
  const sessions = new Map()

  function of(id) {
    let session = sessions.get(id)
    if (!session) {
      session = { source: "open", primer: null, blocks: [], last: "" }
      sessions.set(id, session)
      if (sessions.size > MOST_SESSIONS) sessions.delete(sessions.keys().next().value)
    }
    return session
  }

  const given = (id, more) => ({ session_id: id, cwd, ...more })

  return {
    /** The texts for a system prompt. */
    texts(id) {
      return of(id).blocks
    },
    /** A prompt of the user: the primer, before the first one, and memtool's answer to it. */
    async prompt(id, mark, prompt, files) {
      const session = of(id)
      if (!prompt || session.last === mark) return ""
      session.last = mark
      const isFirst = session.primer === null
      session.primer ??= ask("session-start", given(id, { source: session.source }))
      const primer = await session.primer
      const answer = await ask("prompt", given(id, { prompt, files, message: mark }))
      const texts = [isFirst ? primer : "", answer].filter(Boolean)
      session.blocks = [...session.blocks, ...texts].slice(-MOST_BLOCKS)
      return texts.join("\n")
    },
    /** A command is about to run; memtool answers if a failure of it is on record. */
    async command(id, tool, args, call) {
      if (tool !== SHELL) return ""
      const more = { tool_name: tool, tool_input: { command: args?.command }, call }
      return ask("command", { ...given(id, more), cwd: args?.workdir ?? cwd })
    },
    /** A tool was used; memtool answers if it touched a file. */
    async edit(id, tool, args, call) {
      if (!ANSWERED.has(tool)) return ""
      const tool_input = { ...args, file_path: args?.filePath ?? args?.file_path }
      const more = { tool_name: tool, tool_input, call }
      return ask("edit", { ...given(id, more), cwd: args?.workdir ?? cwd })
    },
    /** A command ended with an error: memtool looks at the worktree as it is now, and says nothing. */
    async failure(id, tool, args, result) {
      const code = result?.metadata?.exit
      if (tool !== SHELL || !(code > 0)) return
      const error = `Exit code ${code}\n${result.output ?? ""}`
      const more = { tool_name: tool, tool_input: { command: args?.command }, error }
      await ask("failure", { ...given(id, more), cwd: args?.workdir ?? cwd })
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
    /** The program ends, and with it every session of it: nothing else says so. */
    exit() {
      for (const id of sessions.keys()) {
        const options = { cwd, input: JSON.stringify(given(id)), timeout: END_LIMIT_MS }
        spawnSync(PROGRAM, ["hook", "opencode", "deleted"], options)
      }
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

/** What was typed of a part: `run` puts several words between quotation marks, and a slash command
 * has the text of its own. */
function typed(part) {
  const text = part.metadata?.typed ?? part.text
  const inner = text.slice(1, -1).replaceAll('\\"', "\0")
  const isQuoted = text.startsWith('"') && text.endsWith('"') && inner.includes(" ")
  return isQuoted && !inner.includes('"') ? inner.replaceAll("\0", '"') : text
}

/** Return the text and the files of the parts of a message. */
function read(parts) {
  const list = Array.isArray(parts) ? parts : []
  const texts = list.filter((part) => part?.type === "text" && !part.synthetic)
  const files = list.filter((part) => part?.type === "file")
  return {
    prompt: texts.map(typed).join("\n"),
    files: files.map((part) => part.source?.path ?? part.filename).filter(Boolean),
  }
}

/** Add a text to a message, as a part that is stored with it and that only the model sees: what is
 * `ignored` goes to no request but those in which `reveal` takes the mark away, so not to titles. */
function attach(parts, text) {
  const last = parts.at(-1)
  const { sessionID, messageID } = last
  parts.push({
    id: `${last.id}m`,
    sessionID,
    messageID,
    type: "text",
    text,
    synthetic: true,
    ignored: true,
    metadata: { memtool: true },
  })
}

/** Let the model see what was attached to the messages of a request. */
function reveal(messages) {
  for (const message of messages) {
    for (const part of message.parts) if (part.metadata?.memtool) part.ignored = false
  }
}

async function server(ctx) {
  const said = memory(ctx?.directory ?? ctx?.worktree ?? process.cwd())
  process.on("exit", safely(said.exit))
  return {
    "command.execute.before": safely(async (input, output) => {
      const part = output.parts.find((one) => one.type === "text")
      if (part) part.metadata = { ...part.metadata, typed: input.arguments }
    }),
    "chat.message": safely(async (input, output) => {
      const { prompt, files } = read(output?.parts)
      const text = await said.prompt(input.sessionID, input.messageID ?? prompt, prompt, files)
      if (text) attach(output.parts, text)
    }),
    "experimental.chat.messages.transform": safely((_input, output) => reveal(output.messages)),
    "tool.execute.before": async (input, output) => {
      let text = ""
      await safely(async () => {
        text = await said.command(input.sessionID, input.tool, output?.args, input.callID)
      })()
      if (text) throw new Error(text)
    },
    "tool.execute.after": safely(async (input, output) => {
      await said.failure(input.sessionID, input.tool, input.args, output)
      const text = await said.edit(input.sessionID, input.tool, input.args, input.callID)
      if (text) output.output += `\n\n${text}`
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
        for (const text of said.texts(event.sessionID)) event.system.push({ type: "text", text })
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
