// Search from disk: browsers start no worker for a file:// page, so the theme's search runs in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.body.appendChild(document.createElement("iframe"))
      frame.hidden = true
      this.inner = frame.contentWindow
      this.inner.document.open()
      this.inner.document.write("<!doctype html><title>search</title><body></body>")
      this.inner.document.close()
      this.inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }))
      this.started = new Promise((resolve, reject) => {
        const script = this.inner.document.createElement("script")
        script.src = url
        script.onload = resolve
        script.onerror = reject
        this.inner.document.body.append(script)
      })
    }
    postMessage(data) {
      this.started.then(() => this.inner.dispatchEvent(new this.inner.MessageEvent("message", { data })))
    }
    terminate() {}
  }
}
