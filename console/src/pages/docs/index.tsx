import { useEffect, useState } from "preact/hooks";
import { base } from "../../base";

interface Schema { $ref?: string; type?: string; items?: Schema; anyOf?: Schema[]; properties?: Record<string, Schema>; required?: string[];
  description?: string; enum?: unknown[]; examples?: unknown[] }
interface Described { description?: string; content?: Record<string, { schema?: Schema }> }
interface Operation { summary?: string; description?: string; tags?: string[];
  parameters?: { name: string; in: string; required?: boolean; description?: string }[];
  requestBody?: Described; responses: Record<string, Described> }
interface OpenApi { paths: Record<string, Record<string, Operation>>; components: { schemas: Record<string, Schema> } }

function named(schema: Schema | undefined): string {
  if (!schema) return "";
  if (schema.$ref) return schema.$ref.split("/").pop() ?? "";
  if (schema.anyOf) return schema.anyOf.map(named).join(" or ");
  if (schema.type === "array") return `list of ${named(schema.items)}`;
  return schema.type ?? "any";
}

function Fields({ api, schema }: { api: OpenApi; schema: Schema | undefined }) {
  const found = schema?.$ref ? api.components.schemas[named(schema)] : schema;
  if (!found?.properties) return null;
  return <ul>{Object.entries(found.properties).map(([name, field]) => <li key={name}><code>{name}</code> <span class="quiet">{named(field)}
    {found.required?.includes(name) ? "" : ", optional"}</span> {field.description}</li>)}</ul>;
}

function One({ api, method, path, operation }: { api: OpenApi; method: string; path: string; operation: Operation }) {
  const body = operation.requestBody?.content?.["application/json"]?.schema;
  return <details class="card"><summary><b>{method.toUpperCase()}</b> <code>{path}</code> <span class="quiet">{operation.description?.split(/(?<=\.)\s/)[0]}</span></summary>
    <p>{operation.description}</p>
    {operation.parameters && operation.parameters.length > 0 && <><h2>Parameters</h2><ul>{operation.parameters.map((p) =>
      <li key={p.name}><code>{p.name}</code> <span class="quiet">{p.in}{p.required ? "" : ", optional"}</span> {p.description}</li>)}</ul></>}
    {body && <><h2>Body: {named(body)}</h2><Fields api={api} schema={body} /></>}
    <h2>Answers</h2><ul>{Object.entries(operation.responses).map(([status, answer]) => {
      const schema = answer.content?.["application/json"]?.schema;
      return <li key={status}><b>{status}</b> {named(schema)} <span class="quiet">{answer.description}</span>
        {status < "300" && <Fields api={api} schema={schema} />}</li>; })}</ul>
  </details>;
}

/** The REST API, from this controller's OpenAPI document. */
export function DocsPage() {
  const [api, setApi] = useState<OpenApi | null>(null);
  const [trouble, setTrouble] = useState("");
  useEffect(() => {
    fetch(`${base}/openapi.json`).then(async (answer) => {
      if (answer.ok) setApi(await answer.json() as OpenApi);
      else setTrouble(`The controller answered ${answer.status} ${answer.statusText}.`);
    }).catch((error: Error) => setTrouble(error.message));
  }, []);
  return <>
    <h1>REST API</h1>
    <p class="quiet">All of it as one document: <a href={`${base}/openapi.json`}>/openapi.json</a>. Scripts send a named token.</p>
    {trouble && <p class="bad" role="alert">{trouble}</p>}
    {api && Object.entries(api.paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, operation]) =>
      <One key={method + path} api={api} method={method} path={path} operation={operation} />))}
  </>;
}
