// Shows the OpenAPI document named by data-api-docs. Calls made from the page carry the token given to "Authorize".
const page = document.querySelector("[data-api-docs]");

window.SwaggerUIBundle({
  url: page.dataset.apiDocs,
  domNode: page,
  deepLinking: true,
  defaultModelsExpandDepth: 0,
  docExpansion: "list",
  validatorUrl: null,
});
