// Pages that are opened from a disk may start no workers, and the search is one: there it runs in a
// hidden frame, which has a worker's `addEventListener` and `postMessage`.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inside = frame.contentWindow;
      inside.postMessage = data => setTimeout(() => this.#tell(this, data));
      const script = inside.document.createElement("script");
      const ready = new Promise(resolve => script.addEventListener("load", resolve));
      script.src = url;
      inside.document.body.append(script);
      this.postMessage = data => ready.then(() => this.#tell(inside, data));
      this.terminate = () => frame.remove();
    }

    #tell(target, data) {
      target.dispatchEvent(new MessageEvent("message", { data }));
    }
  };
}
