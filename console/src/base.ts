// Where the console is served.

/** Path before the console's own, "" at the root of a host: the controller's services.controller.path_prefix. */
export const base = document.querySelector<HTMLMetaElement>('meta[name="path-prefix"]')?.content ?? "";
