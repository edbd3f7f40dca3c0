// Lets code in text and tables break after slashes, underscores and the like, so
// that it fits on a phone. The text that a reader copies does not change.
document.addEventListener('DOMContentLoaded', () => {
  for (const code of document.querySelectorAll('code.literal .pre')) {
    const chunks = code.textContent.split(
      /(?<=\w[/_=,:(-])(?=[^/_.=,:)\s-])|(?<=\w\.)(?=\w{5})/);
    code.style.whiteSpace = 'inherit';
    code.replaceChildren();
    for (const text of chunks) {
      const chunk = document.createElement('span');
      chunk.className = 'chunk';
      chunk.textContent = text;
      code.append(chunk, document.createElement('wbr'));
    }
    code.lastChild?.remove();
  }
});
