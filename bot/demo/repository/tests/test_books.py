def test_all_books_are_listed(client):
    assert [book["title"] for book in client.get("/books").json()] == ["Dune", "Emma", "Persuasion"]


def test_books_are_filtered_by_author(client):
    assert len(client.get("/books", params={"author": "Austen"}).json()) == 2


def test_one_book(client):
    assert client.get("/books/978-0").json()["author"] == "Herbert"


def test_an_unknown_book_is_a_404(client):
    answer = client.get("/books/000")
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "unknown_book"
